"""The request handlers, one file per API.

A handler validates the request, calls the components that hold the state, and builds the response. It imports no other handler. Of
quotas, it charges only the controller mutation quota; all others are charged after it returns.
"""
