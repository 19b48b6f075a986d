"""What an audit knows of each kind of mechanism: its inputs and the law of its reports."""
