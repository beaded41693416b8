"""What each station hands on: types only. JSON, schemas and checks of saved files are made of them.

Whoever computes a result fills its type, whoever prints or draws it reads fields by name. Nothing here
computes, and nothing here imports a room but `tfrctrace.base`.
"""
