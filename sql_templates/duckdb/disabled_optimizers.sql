-- The optimizers that are switched off, separated by commas.
SELECT current_setting('disabled_optimizers');
