  IF here < {version} THEN
{statements}
  END IF;
