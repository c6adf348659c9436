"""What a broker does with each kind of request."""
