"""One file per API. A handler validates, asks the state and builds the answer; it never imports another handler and never charges."""
