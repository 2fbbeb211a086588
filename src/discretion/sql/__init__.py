"""What may be written in a question: names, row expressions, relations, aggregates and arithmetic on the answer."""
