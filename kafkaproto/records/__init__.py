"""Record batches: what lies inside the records fields of Produce and Fetch. Loaded only by who looks inside."""
