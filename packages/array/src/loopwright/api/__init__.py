"""The functions of the namespace, one module per chapter of the array API standard."""
