"""For the owner's eyes: explanations, diagnostics, statements as text, pictures."""
