"""The audit of links over days to months, of the results of a batch.

`pieces.py` lists what the batch has read, `day_task.py` judges one day of a link and keeps what a page needs,
`audit_folder.py` is where, and `perform_audit.py` finds incidents and their places.
"""
