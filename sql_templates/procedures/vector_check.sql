    PERFORM sqlrs.check_work(
      sqlrs.smoothness_ratio(trunc(asked * 1000000000000 / {shared}) / 1000000000000, 5 * greatest(group_count, 1)::integer),
      {degrees}, {once}, {most}
    );
