"""Small traces with planted chances to fuse kernels, and the truth about them.

The recorder knows every tensor's identity, so that data flow is stated and not inferred, and each plant's closed form
follows from it. Imports nothing of the product: what checks a program must not share its code or its numbers.
"""
