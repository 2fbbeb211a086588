SELECT COUNT(*) FROM patients
-- > SELECT COUNT(*) AS "count(*)" FROM patients
-- > count complete: every row

SELECT COUNT(*) AS n FROM patients WHERE age > 40 AND smoker
-- > SELECT COUNT(*) AS "n" FROM patients WHERE age > 40 AND smoker
-- > count: every row
-- > where (("t"."age" > 40) AND "t"."smoker")

SELECT COUNT(income) FROM patients
-- > SELECT COUNT(income) AS "count(income)" FROM patients
-- > count: CASE WHEN NOT (CASE WHEN ISFINITE("t"."income") THEN "t"."income" END) IS NULL THEN 1 END

SELECT COUNT(age) FROM patients
-- > SELECT COUNT(age) AS "count(age)" FROM patients
-- > count complete: every row

SELECT COUNT(DISTINCT id) FROM patients
-- > SELECT COUNT(DISTINCT id) AS "count(distinct id)" FROM patients
-- > people complete: every row

SELECT COUNT(DISTINCT id) FROM patients WHERE smoker
-- > SELECT COUNT(DISTINCT id) AS "count(distinct id)" FROM patients WHERE smoker
-- > people: every row
-- > where "t"."smoker"

SELECT SUM(income) FROM patients
-- > SELECT SUM(income) AS "sum(income)" FROM patients
-- > sum 0..10000000 by 1/100 from 0: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END

SELECT AVG(age) FROM patients
-- > SELECT AVG(age) AS "avg(age)" FROM patients
-- > mean -60..60 by 1 from 60 complete: "t"."age"

SELECT AVG(income) FROM patients WHERE region IN ('N', 'S')
-- > SELECT AVG(income) AS "avg(income)" FROM patients WHERE region IN ('N', 'S')
-- > mean -5000000..5000000 by 1/100 from 50000: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END
-- > where (CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END IN ('N', 'S'))

SELECT VARIANCE(age), VAR_SAMP(income) FROM patients
-- > SELECT VARIANCE(age) AS "variance(age)", VARIANCE(income) AS "variance(income)" FROM patients
-- > sample variance -60..60 by 1 from 60 complete: "t"."age"
-- > sample variance -5000..5000 by 10 from 50000: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END

SELECT VAR_POP(age), STDDEV_SAMP(income) FROM patients
-- > SELECT VAR_POP(age) AS "var_pop(age)", SQRT(GREATEST(VARIANCE(income), 0)) AS "stddev_samp(income)" FROM patients
-- > variance -60..60 by 1 from 60 complete: "t"."age"
-- > sample variance -5000..5000 by 10 from 50000: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END

SELECT STDDEV_POP(weight) FROM patients
-- > SELECT SQRT(GREATEST(VAR_POP(weight), 0)) AS "stddev_pop(weight)" FROM patients
-- > variance -5750..5750 by 1/50 from 135: "t"."weight"

SELECT STDDEV(weight) FROM patients
-- > SELECT SQRT(GREATEST(VARIANCE(weight), 0)) AS "stddev(weight)" FROM patients
-- > sample variance -5750..5750 by 1/50 from 135: "t"."weight"

SELECT MEDIAN(age) FROM patients
-- > SELECT MEDIAN(age) AS "median(age)" FROM patients
-- > quantile 0..120 by 1 from 0 rank 1/2 complete: "t"."age"

SELECT QUANTILE_CONT(income, 0.9) FROM patients
-- > SELECT QUANTILE_CONT(income, 0.9) AS "quantile_cont(income, 0.9)" FROM patients
-- > quantile 0..1000 by 100 from 0 rank 9/10: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END

SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY income) AS q FROM patients
-- > SELECT QUANTILE_CONT(income, 0.25) AS "q" FROM patients
-- > quantile 0..1000 by 100 from 0 rank 1/4: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END

SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY income DESC) AS q FROM patients
-- > SELECT QUANTILE_CONT(income, 0.75) AS "q" FROM patients
-- > quantile 0..1000 by 100 from 0 rank 3/4: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END

SELECT MODE(region) AS most FROM patients
-- > SELECT MODE(region) AS "most" FROM patients
-- > mode 0..3 by 1 from 0: CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END among N, S, E, W

SELECT COUNT(DISTINCT region) AS regions FROM patients
-- > SELECT COUNT(DISTINCT region) AS "regions" FROM patients
-- > distinct 0..3 by 1 from 0: CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END among N, S, E, W

SELECT QUANTILE_CONT(income, [0.25, 0.75]) FROM patients
-- > SELECT QUANTILE_CONT(income, 0.25) AS "quantile_cont(income, 0.25)", QUANTILE_CONT(income, 0.75) AS "quantile_cont(income, 0.75)" FROM patients
-- > quantile 0..1000 by 100 from 0 rank 1/4: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END
-- > quantile 0..1000 by 100 from 0 rank 3/4: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END

SELECT QUANTILE_CONT(income, [0.25]) AS q FROM patients
-- > SELECT QUANTILE_CONT(income, 0.25) AS "q_0.25" FROM patients
-- > quantile 0..1000 by 100 from 0 rank 1/4: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END

SELECT region, QUANTILE_CONT(income, [0.25, 0.75]) AS q FROM patients GROUP BY region ORDER BY Q DESC NULLS FIRST, region
-- > SELECT region AS "region", QUANTILE_CONT(income, 0.25) AS "q_0.25", QUANTILE_CONT(income, 0.75) AS "q_0.75" FROM patients GROUP BY region ORDER BY QUANTILE_CONT(income, 0.25) DESC NULLS FIRST, QUANTILE_CONT(income, 0.75) DESC NULLS FIRST, region ASC
-- > quantile 0..1000 by 100 from 0 rank 1/4: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END
-- > quantile 0..1000 by 100 from 0 rank 3/4: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END
-- > by CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END: N, S, E, W

SELECT QUANTILE_CONT(income, [0.25, 0.75]) AS q, region, COUNT(*) AS n FROM patients GROUP BY 2 ORDER BY 3, 2, 1
-- > SELECT QUANTILE_CONT(income, 0.25) AS "q_0.25", QUANTILE_CONT(income, 0.75) AS "q_0.75", region AS "region", COUNT(*) AS "n" FROM patients GROUP BY region ORDER BY COUNT(*) ASC, region ASC, QUANTILE_CONT(income, 0.25) ASC, QUANTILE_CONT(income, 0.75) ASC
-- > quantile 0..1000 by 100 from 0 rank 1/4: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END
-- > quantile 0..1000 by 100 from 0 rank 3/4: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END
-- > count: every row
-- > by CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END: N, S, E, W

SELECT region, MEDIAN(income) AS m FROM patients GROUP BY region ORDER BY QUANTILE_CONT(income, [0.25, 0.75])
-- > SELECT region AS "region", MEDIAN(income) AS "m" FROM patients GROUP BY region ORDER BY QUANTILE_CONT(income, 0.25) ASC, QUANTILE_CONT(income, 0.75) ASC
-- > quantile 0..1000 by 100 from 0 rank 1/2: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END
-- > quantile 0..1000 by 100 from 0 rank 1/4: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END
-- > quantile 0..1000 by 100 from 0 rank 3/4: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END
-- > by CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END: N, S, E, W

SELECT PERCENTILE_CONT([0.1, 0.5]) WITHIN GROUP (ORDER BY income DESC) FILTER (WHERE smoker) AS q FROM patients
-- > SELECT QUANTILE_CONT(income, 0.9) FILTER(WHERE smoker) AS "q_0.1", QUANTILE_CONT(income, 0.5) FILTER(WHERE smoker) AS "q_0.5" FROM patients
-- > quantile 0..1000 by 100 from 0 rank 9/10: CASE WHEN "t"."smoker" THEN CASE WHEN ISFINITE("t"."income") THEN "t"."income" END END
-- > quantile 0..1000 by 100 from 0 rank 1/2: CASE WHEN "t"."smoker" THEN CASE WHEN ISFINITE("t"."income") THEN "t"."income" END END

SELECT QUANTILE_DISC(weight, 0.5) FROM patients
-- > SELECT QUANTILE_DISC(weight, 0.5) AS "quantile_disc(weight, 0.5)" FROM patients
-- > quantile 0..460 by 1/2 from 20 rank 1/2: "t"."weight"

SELECT MIN(age), MAX(age) FROM patients
-- > SELECT MIN(age) AS "min(age)", MAX(age) AS "max(age)" FROM patients
-- > quantile 0..120 by 1 from 0 rank 0 complete: "t"."age"
-- > quantile 0..120 by 1 from 0 rank 1 complete: "t"."age"

SELECT region, COUNT(*) FROM patients GROUP BY region
-- > SELECT region AS "region", COUNT(*) AS "count(*)" FROM patients GROUP BY region
-- > count: every row
-- > by CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END: N, S, E, W

SELECT region, AVG(age) FROM patients WHERE smoker GROUP BY region
-- > SELECT region AS "region", AVG(age) AS "avg(age)" FROM patients WHERE smoker GROUP BY region
-- > mean -60..60 by 1 from 60: "t"."age"
-- > where "t"."smoker"
-- > by CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END: N, S, E, W

SELECT region, grade, COUNT(*) AS n, AVG(income) AS mean FROM patients GROUP BY region, grade
-- > SELECT region AS "region", grade AS "grade", COUNT(*) AS "n", AVG(income) AS "mean" FROM patients GROUP BY region, grade
-- > count: every row
-- > mean -5000000..5000000 by 1/100 from 50000: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END
-- > by CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END: N, S, E, W
-- > by CASE WHEN STRLEN("t"."grade") <= 1000 THEN "t"."grade" ELSE LEFT("t"."grade", 1000) END: a, b, c

SELECT region AS r, COUNT(*) FROM patients GROUP BY r
-- > SELECT region AS "r", COUNT(*) AS "count(*)" FROM patients GROUP BY region
-- > count: every row
-- > by CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END: N, S, E, W

SELECT region, COUNT(*) FROM patients GROUP BY 1 ORDER BY 2 DESC, 1
-- > SELECT region AS "region", COUNT(*) AS "count(*)" FROM patients GROUP BY region ORDER BY COUNT(*) DESC, region ASC
-- > count: every row
-- > by CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END: N, S, E, W

SELECT region, COUNT(*) AS n FROM patients GROUP BY ALL HAVING COUNT(*) > 90 ORDER BY n DESC
-- > SELECT region AS "region", COUNT(*) AS "n" FROM patients GROUP BY region HAVING COUNT(*) > 90 ORDER BY COUNT(*) DESC
-- > count: every row
-- > by CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END: N, S, E, W

SELECT region, COUNT(*) AS n FROM patients GROUP BY region ORDER BY region LIMIT 2 OFFSET 1
-- > SELECT region AS "region", COUNT(*) AS "n" FROM patients GROUP BY region ORDER BY region ASC LIMIT 2 OFFSET 1
-- > count: every row
-- > by CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END: N, S, E, W

SELECT UPPER(region) AS u, LOWER(grade) AS l, MEDIAN(age) FROM patients GROUP BY 1, 2
-- > SELECT UPPER(region) AS "u", LOWER(grade) AS "l", MEDIAN(age) AS "median(age)" FROM patients GROUP BY UPPER(region), LOWER(grade)
-- > quantile 0..120 by 1 from 0 rank 1/2: "t"."age"
-- > by TRY(UPPER(CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END)): N, S, E, W
-- > by TRY(LOWER(CASE WHEN STRLEN("t"."grade") <= 1000 THEN "t"."grade" ELSE LEFT("t"."grade", 1000) END)): a, b, c

SELECT smoker, AVG(children) FROM patients GROUP BY smoker
-- > SELECT smoker AS "smoker", AVG(children) AS "avg(children)" FROM patients GROUP BY smoker
-- > mean -10..10 by 1 from 10: "t"."children"
-- > by "t"."smoker": False, True

SELECT age >= 65 AS old, COUNT(*) FROM patients GROUP BY old
-- > SELECT age >= 65 AS "old", COUNT(*) AS "count(*)" FROM patients GROUP BY age >= 65
-- > count: every row
-- > by ("t"."age" >= 65): False, True

SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) FROM patients GROUP BY decade ORDER BY decade
-- > SELECT FLOOR(age / 10) * 10 AS "decade", COUNT(*) AS "count(*)" FROM patients GROUP BY FLOOR(age / 10) * 10 ORDER BY FLOOR(age / 10) * 10 ASC
-- > count: every row
-- > by CASE WHEN ISFINITE(TRY(TRY(FLOOR(TRY(TRY_CAST("t"."age" AS DOUBLE) / 10.0e0))) * 10.0e0)) THEN TRY(TRY(FLOOR(TRY(TRY_CAST("t"."age" AS DOUBLE) / 10.0e0))) * 10.0e0) END: 0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120

SELECT children, COUNT(*) FROM patients GROUP BY children
-- > SELECT children AS "children", COUNT(*) AS "count(*)" FROM patients GROUP BY children
-- > count: every row
-- > by "t"."children": 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20

SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END AS who, AVG(income) FROM patients GROUP BY who
-- > SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END AS "who", AVG(income) AS "avg(income)" FROM patients GROUP BY CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END
-- > mean -5000000..5000000 by 1/100 from 50000: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END
-- > by CASE WHEN ("t"."age" < 18) THEN 'child' WHEN ("t"."age" < 65) THEN 'adult' ELSE 'old' END: child, adult, old

SELECT EXTRACT(MONTH FROM born) AS m, COUNT(*) FROM patients GROUP BY m
-- > SELECT EXTRACT(MONTH FROM born) AS "m", COUNT(*) AS "count(*)" FROM patients GROUP BY EXTRACT(MONTH FROM born)
-- > count: every row
-- > by TRY(EXTRACT(MONTH FROM CASE WHEN "t"."born" BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN "t"."born" END)): 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12

SELECT QUARTER(seen) AS q, HOUR(seen) AS h, COUNT(*) FROM patients GROUP BY q, h
-- > SELECT EXTRACT(QUARTER FROM seen) AS "q", EXTRACT(HOUR FROM seen) AS "h", COUNT(*) AS "count(*)" FROM patients GROUP BY EXTRACT(QUARTER FROM seen), EXTRACT(HOUR FROM seen)
-- > count: every row
-- > by TRY(EXTRACT(QUARTER FROM CASE WHEN "t"."seen" BETWEEN CAST('0001-01-01 00:00:00' AS TIMESTAMP) AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP) THEN "t"."seen" END)): 1, 2, 3, 4
-- > by TRY(EXTRACT(HOUR FROM CASE WHEN "t"."seen" BETWEEN CAST('0001-01-01 00:00:00' AS TIMESTAMP) AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP) THEN "t"."seen" END)): 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23

SELECT CASE region WHEN 'N' THEN 'north' ELSE 'elsewhere' END AS part, SUM(children) FROM patients GROUP BY 1
-- > SELECT CASE WHEN region = 'N' THEN 'north' ELSE 'elsewhere' END AS "part", SUM(children) AS "sum(children)" FROM patients GROUP BY CASE WHEN region = 'N' THEN 'north' ELSE 'elsewhere' END
-- > sum 0..20 by 1 from 0: "t"."children"
-- > by CASE WHEN (CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END = 'N') THEN 'north' ELSE 'elsewhere' END: north, elsewhere

SELECT COUNT(*) * 2 + 1 AS twice, AVG(income) / 1000 AS thousands FROM patients
-- > SELECT COUNT(*) * 2 + 1 AS "twice", AVG(income) / 1000 AS "thousands" FROM patients
-- > count complete: every row
-- > mean -5000000..5000000 by 1/100 from 50000: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END

SELECT SUM(income) / COUNT(income) AS mean, ROUND(AVG(age), 1) AS years FROM patients
-- > SELECT SUM(income) / COUNT(income) AS "mean", ROUND(AVG(age), 1) AS "years" FROM patients
-- > sum 0..10000000 by 1/100 from 0: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END
-- > count: CASE WHEN NOT (CASE WHEN ISFINITE("t"."income") THEN "t"."income" END) IS NULL THEN 1 END
-- > mean -60..60 by 1 from 60 complete: "t"."age"

SELECT region, COUNT(*) FILTER (WHERE smoker) / COUNT(*) AS smokers FROM patients GROUP BY region
-- > SELECT region AS "region", COUNT(*) FILTER(WHERE smoker) / COUNT(*) AS "smokers" FROM patients GROUP BY region
-- > count: CASE WHEN "t"."smoker" THEN 1 END
-- > count: every row
-- > by CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END: N, S, E, W

SELECT COUNT_IF(age > 30) AS over_30, SUM(income) FILTER (WHERE age > 30) AS earned FROM patients
-- > SELECT COUNT(*) FILTER(WHERE age > 30) AS "over_30", SUM(income) FILTER(WHERE age > 30) AS "earned" FROM patients
-- > count: CASE WHEN ("t"."age" > 30) THEN 1 END
-- > sum 0..10000000 by 1/100 from 0: CASE WHEN ("t"."age" > 30) THEN CASE WHEN ISFINITE("t"."income") THEN "t"."income" END END

SELECT CASE WHEN COUNT(*) > 100 THEN 'many' ELSE 'few' END AS size FROM patients
-- > SELECT CASE WHEN COUNT(*) > 100 THEN 'many' ELSE 'few' END AS "size" FROM patients
-- > count complete: every row

SELECT COALESCE(AVG(income), 0) AS mean FROM patients WHERE age > 200
-- > SELECT COALESCE(AVG(income), 0) AS "mean" FROM patients WHERE age > 200
-- > mean -5000000..5000000 by 1/100 from 50000: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END
-- > where ("t"."age" > 200)

SELECT SUM(CASE WHEN smoker THEN 1 ELSE 0 END) AS smokers FROM patients
-- > SELECT SUM(CASE WHEN smoker THEN 1 ELSE 0 END) AS "smokers" FROM patients
-- > sum 0..1 by 1 from 0: CASE WHEN "t"."smoker" THEN 1 ELSE 0 END

SELECT AVG(CAST(smoker AS INTEGER)) AS rate FROM patients
-- > SELECT AVG(CAST(smoker AS INT)) AS "rate" FROM patients
-- > mean 0..1 by 1 from 0: TRY_CAST("t"."smoker" AS INT)

SELECT SUM(age * 2 + 1), AVG(120 - age) FROM patients
-- > SELECT SUM(age * 2 + 1) AS "sum(age * 2 + 1)", AVG(120 - age) AS "avg(120 - age)" FROM patients
-- > sum 1..241 by 1 from 0 complete: ((TRY_CAST("t"."age" AS BIGINT) * 2) + 1)
-- > mean -60..60 by 1 from 60 complete: (120 - TRY_CAST("t"."age" AS BIGINT))

SELECT SUM(income - 500) FROM patients WHERE NOT income IS NULL
-- > SELECT SUM(income - 500) AS "sum(income - 500)" FROM patients WHERE NOT income IS NULL
-- > sum -50000..9950000 by 1/100 from 0: CASE WHEN ISFINITE(TRY(CASE WHEN ISFINITE("t"."income") THEN "t"."income" END - 500.0e0)) THEN TRY(CASE WHEN ISFINITE("t"."income") THEN "t"."income" END - 500.0e0) END
-- > where (NOT (CASE WHEN ISFINITE("t"."income") THEN "t"."income" END IS NULL))

SELECT AVG(LEAST(GREATEST(LENGTH(note), 2), 8)) FROM patients
-- > SELECT AVG(LEAST(GREATEST(LENGTH(note), 2), 8)) AS "avg(least(greatest(length(note), 2), 8))" FROM patients
-- > mean -3..3 by 1 from 5 complete: TRY(LEAST(TRY(GREATEST(TRY(LENGTH(CASE WHEN STRLEN("t"."note") <= 1000 THEN "t"."note" ELSE LEFT("t"."note", 1000) END)), 2)), 8))

SELECT COUNT(*) FROM patients WHERE age BETWEEN 20 AND 30 OR NOT smoker
-- > SELECT COUNT(*) AS "count(*)" FROM patients WHERE age BETWEEN 20 AND 30 OR NOT smoker
-- > count: every row
-- > where (("t"."age" BETWEEN 20 AND 30) OR (NOT "t"."smoker"))

SELECT COUNT(*) FROM patients WHERE note LIKE 'note 1%' AND note NOT LIKE '%9'
-- > SELECT COUNT(*) AS "count(*)" FROM patients WHERE note LIKE 'note 1%' AND NOT note LIKE '%9'
-- > count: every row
-- > where ((CASE WHEN STRLEN("t"."note") <= 1000 THEN "t"."note" ELSE LEFT("t"."note", 1000) END LIKE 'note 1%') AND (NOT (CASE WHEN STRLEN("t"."note") <= 1000 THEN "t"."note" ELSE LEFT("t"."note", 1000) END LIKE '%9')))

SELECT COUNT(*) FROM patients WHERE note ILIKE 'NOTE 2_' OR note IS NULL
-- > SELECT COUNT(*) AS "count(*)" FROM patients WHERE note ILIKE 'NOTE 2_' OR note IS NULL
-- > count: every row
-- > where ((CASE WHEN STRLEN("t"."note") <= 1000 THEN "t"."note" ELSE LEFT("t"."note", 1000) END ILIKE 'NOTE 2_') OR (CASE WHEN STRLEN("t"."note") <= 1000 THEN "t"."note" ELSE LEFT("t"."note", 1000) END IS NULL))

SELECT COUNT(*) FROM patients WHERE born < '1970-06-01' AND seen >= DATE '2024-03-01'
-- > SELECT COUNT(*) AS "count(*)" FROM patients WHERE born < CAST('1970-06-01' AS DATE) AND seen >= CAST('2024-03-01' AS DATE)
-- > count: every row
-- > where ((CASE WHEN "t"."born" BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN "t"."born" END < CAST('1970-06-01' AS DATE)) AND (CASE WHEN "t"."seen" BETWEEN CAST('0001-01-01 00:00:00' AS TIMESTAMP) AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP) THEN "t"."seen" END >= CAST('2024-03-01 00:00:00' AS TIMESTAMP)))

SELECT COUNT(*) FROM patients WHERE born + INTERVAL 30 YEAR < seen AND DATE_DIFF('year', born, seen) < 80
-- > SELECT COUNT(*) AS "count(*)" FROM patients WHERE born + INTERVAL '30' YEAR < seen AND DATE_DIFF('YEAR', born, seen) < 80
-- > count: every row
-- > where ((CASE WHEN TRY(CASE WHEN "t"."born" BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN "t"."born" END + INTERVAL '30' YEAR) BETWEEN CAST('0001-01-01 00:00:00' AS TIMESTAMP) AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP) THEN TRY(CASE WHEN "t"."born" BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN "t"."born" END + INTERVAL '30' YEAR) END < CASE WHEN "t"."seen" BETWEEN CAST('0001-01-01 00:00:00' AS TIMESTAMP) AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP) THEN "t"."seen" END) AND (TRY(DATE_DIFF('YEAR', TRY_CAST(CASE WHEN "t"."born" BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN "t"."born" END AS TIMESTAMP), CASE WHEN "t"."seen" BETWEEN CAST('0001-01-01 00:00:00' AS TIMESTAMP) AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP) THEN "t"."seen" END)) < 80))

SELECT COUNT(*) FROM patients WHERE YEAR(born) = 1950 OR DATE_PART('dow', seen) = 3
-- > SELECT COUNT(*) AS "count(*)" FROM patients WHERE EXTRACT(YEAR FROM born) = 1950 OR EXTRACT(DAYOFWEEK FROM seen) = 3
-- > count: every row
-- > where ((TRY(EXTRACT(YEAR FROM CASE WHEN "t"."born" BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN "t"."born" END)) = 1950) OR (TRY(EXTRACT(DAYOFWEEK FROM CASE WHEN "t"."seen" BETWEEN CAST('0001-01-01 00:00:00' AS TIMESTAMP) AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP) THEN "t"."seen" END)) = 3))

SELECT COUNT(*) FROM patients WHERE DATE_TRUNC('month', seen) = TIMESTAMP '2024-05-01 00:00:00'
-- > SELECT COUNT(*) AS "count(*)" FROM patients WHERE DATE_TRUNC('MONTH', seen) = CAST('2024-05-01 00:00:00' AS TIMESTAMP)
-- > count: every row
-- > where (CASE WHEN TRY_CAST(TRY(DATE_TRUNC('MONTH', CASE WHEN "t"."seen" BETWEEN CAST('0001-01-01 00:00:00' AS TIMESTAMP) AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP) THEN "t"."seen" END)) AS TIMESTAMP) BETWEEN CAST('0001-01-01 00:00:00' AS TIMESTAMP) AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP) THEN TRY_CAST(TRY(DATE_TRUNC('MONTH', CASE WHEN "t"."seen" BETWEEN CAST('0001-01-01 00:00:00' AS TIMESTAMP) AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP) THEN "t"."seen" END)) AS TIMESTAMP) END = CAST('2024-05-01 00:00:00' AS TIMESTAMP))

SELECT COUNT(*) FROM patients WHERE income / age > 500
-- > SELECT COUNT(*) AS "count(*)" FROM patients WHERE income / age > 500
-- > count: every row
-- > where (CASE WHEN ISFINITE(TRY(CASE WHEN ISFINITE("t"."income") THEN "t"."income" END / NULLIF(TRY_CAST("t"."age" AS DOUBLE), 0.0e0))) THEN TRY(CASE WHEN ISFINITE("t"."income") THEN "t"."income" END / NULLIF(TRY_CAST("t"."age" AS DOUBLE), 0.0e0)) END > 500.0e0)

SELECT COUNT(*) FROM patients WHERE CAST(SUBSTRING(note, 6) AS INTEGER) % 2 = 0
-- > SELECT COUNT(*) AS "count(*)" FROM patients WHERE CAST(SUBSTRING(note, 6) AS INT) % 2 = 0
-- > count: every row
-- > where (TRY(TRY_CAST(TRY_CAST(TRY(SUBSTRING(CASE WHEN STRLEN("t"."note") <= 1000 THEN "t"."note" ELSE LEFT("t"."note", 1000) END, 6)) AS INT) AS BIGINT) % 2) = 0)

SELECT COUNT(*) FROM patients WHERE TRY_CAST(note AS DOUBLE) IS NULL
-- > SELECT COUNT(*) AS "count(*)" FROM patients WHERE TRY_CAST(note AS DOUBLE) IS NULL
-- > count: every row
-- > where (CASE WHEN ISFINITE(TRY_CAST(CASE WHEN STRLEN("t"."note") <= 1000 THEN "t"."note" ELSE LEFT("t"."note", 1000) END AS DOUBLE)) THEN TRY_CAST(CASE WHEN STRLEN("t"."note") <= 1000 THEN "t"."note" ELSE LEFT("t"."note", 1000) END AS DOUBLE) END IS NULL)

SELECT COUNT(*) FROM patients WHERE CASE WHEN smoker THEN age > 50 ELSE age > 60 END
-- > SELECT COUNT(*) AS "count(*)" FROM patients WHERE CASE WHEN smoker THEN age > 50 ELSE age > 60 END
-- > count: every row
-- > where CASE WHEN "t"."smoker" THEN ("t"."age" > 50) ELSE ("t"."age" > 60) END

SELECT COUNT(*) FROM patients WHERE COALESCE(income, 0) = 0 AND NULLIF(children, 0) IS NULL
-- > SELECT COUNT(*) AS "count(*)" FROM patients WHERE COALESCE(income, 0) = 0 AND NULLIF(children, 0) IS NULL
-- > count: every row
-- > where ((TRY(COALESCE(CASE WHEN ISFINITE("t"."income") THEN "t"."income" END, 0.0e0)) = 0.0e0) AND (TRY(NULLIF("t"."children", 0)) IS NULL))

SELECT COUNT(*) FROM patients WHERE weight * 2 - 10 > 100.5 AND ABS(age - 50) <= 10
-- > SELECT COUNT(*) AS "count(*)" FROM patients WHERE weight * 2 - 10 > 100.5 AND ABS(age - 50) <= 10
-- > count: every row
-- > where (((("t"."weight" * CAST('2' AS DECIMAL(1, 0))) - CAST('10.0' AS DECIMAL(6, 1))) > CAST('100.5' AS DECIMAL(7, 1))) AND (TRY(ABS((TRY_CAST("t"."age" AS BIGINT) - 50))) <= 10))

SELECT COUNT(*) FROM patients WHERE SQRT(income) > 200 AND LN(weight) < 4.2 AND ROUND(weight) > 50
-- > SELECT COUNT(*) AS "count(*)" FROM patients WHERE SQRT(income) > 200 AND LN(weight) < 4.2 AND ROUND(weight) > 50
-- > count: every row
-- > where (((CASE WHEN ISFINITE(TRY(SQRT(CASE WHEN ISFINITE("t"."income") THEN "t"."income" END))) THEN TRY(SQRT(CASE WHEN ISFINITE("t"."income") THEN "t"."income" END)) END > 200.0e0) AND (CASE WHEN ISFINITE(TRY(LN(TRY_CAST("t"."weight" AS DOUBLE)))) THEN TRY(LN(TRY_CAST("t"."weight" AS DOUBLE))) END < 4.2e0)) AND (TRY_CAST(TRY(ROUND("t"."weight")) AS DECIMAL(5, 0)) > CAST('50' AS DECIMAL(5, 0))))

SELECT COUNT(*) FROM patients WHERE STARTS_WITH(note, 'note') AND ENDS_WITH(note, '3') AND CONTAINS(note, '4')
-- > SELECT COUNT(*) AS "count(*)" FROM patients WHERE STARTS_WITH(note, 'note') AND ENDS_WITH(note, '3') AND CONTAINS(note, '4')
-- > count: every row
-- > where ((TRY(STARTS_WITH(CASE WHEN STRLEN("t"."note") <= 1000 THEN "t"."note" ELSE LEFT("t"."note", 1000) END, 'note')) AND TRY(ENDS_WITH(CASE WHEN STRLEN("t"."note") <= 1000 THEN "t"."note" ELSE LEFT("t"."note", 1000) END, '3'))) AND TRY(CONTAINS(CASE WHEN STRLEN("t"."note") <= 1000 THEN "t"."note" ELSE LEFT("t"."note", 1000) END, '4')))

SELECT COUNT(*) FROM patients WHERE region || grade = 'Na' OR CONCAT(region, '-', grade) = 'S-b'
-- > SELECT COUNT(*) AS "count(*)" FROM patients WHERE region || grade = 'Na' OR CONCAT(region, '-', grade) = 'S-b'
-- > count: every row
-- > where ((TRY(CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END || CASE WHEN STRLEN("t"."grade") <= 1000 THEN "t"."grade" ELSE LEFT("t"."grade", 1000) END) = 'Na') OR (TRY(CONCAT(CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END, '-', CASE WHEN STRLEN("t"."grade") <= 1000 THEN "t"."grade" ELSE LEFT("t"."grade", 1000) END)) = 'S-b'))

SELECT COUNT(*) FROM patients WHERE grade = 'a' AND region <> 'N' AND smoker IS TRUE
-- > SELECT COUNT(*) AS "count(*)" FROM patients WHERE grade = 'a' AND region <> 'N' AND smoker IS TRUE
-- > count: every row
-- > where (((CASE WHEN STRLEN("t"."grade") <= 1000 THEN "t"."grade" ELSE LEFT("t"."grade", 1000) END = 'a') AND (CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END <> 'N')) AND ("t"."smoker" IS TRUE))

SELECT COUNT(*) FROM patients WHERE income IS DISTINCT FROM 5000 AND LEFT(TRIM(note), 4) = 'note'
-- > SELECT COUNT(*) AS "count(*)" FROM patients WHERE income IS DISTINCT FROM 5000 AND LEFT(TRIM(note), 4) = 'note'
-- > count: every row
-- > where ((CASE WHEN ISFINITE("t"."income") THEN "t"."income" END IS DISTINCT FROM 5000.0e0) AND (TRY(LEFT(TRY(TRIM(CASE WHEN STRLEN("t"."note") <= 1000 THEN "t"."note" ELSE LEFT("t"."note", 1000) END)), 4)) = 'note'))

SELECT COUNT(*) FROM patients WHERE age // 10 = 4 AND age % 2 = 1 AND -age < -40
-- > SELECT COUNT(*) AS "count(*)" FROM patients WHERE age // 10 = 4 AND age % 2 = 1 AND -age < -40
-- > count: every row
-- > where (((TRY(TRY_CAST("t"."age" AS BIGINT) // 10) = 4) AND (TRY(TRY_CAST("t"."age" AS BIGINT) % 2) = 1)) AND (TRY(-TRY_CAST("t"."age" AS BIGINT)) < (-40)))

SELECT COUNT(*) FROM patients WHERE id % 2 = 0
-- > SELECT COUNT(*) AS "count(*)" FROM patients WHERE id % 2 = 0
-- > count: every row
-- > where (TRY("t"."id" % 2) = 0)

WITH adults AS (SELECT * FROM patients WHERE age >= 18) SELECT region, AVG(income) FROM adults GROUP BY region
-- > SELECT region AS "region", AVG(income) AS "avg(income)" FROM patients WHERE age >= 18 GROUP BY region
-- > mean -5000000..5000000 by 1/100 from 50000: CASE WHEN ISFINITE("t"."income") THEN "t"."income" END
-- > where ("t"."age" >= 18)
-- > by CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END: N, S, E, W

WITH a AS (SELECT age * 12 AS months, region FROM patients WHERE smoker), b AS (SELECT months + 1 AS m, region FROM a) SELECT region, AVG(m) FROM b WHERE m > 100 GROUP BY region
-- > SELECT region AS "region", AVG((age * 12) + 1) AS "avg(m)" FROM patients WHERE smoker AND ((age * 12) + 1) > 100 GROUP BY region
-- > mean -720..720 by 1 from 721: ((TRY_CAST("t"."age" AS BIGINT) * 12) + 1)
-- > where "t"."smoker"
-- > where (((TRY_CAST("t"."age" AS BIGINT) * 12) + 1) > 100)
-- > by CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END: N, S, E, W

SELECT AVG(k) FROM (SELECT income / 1000 AS k FROM patients WHERE age > 30) AS thousands
-- > SELECT AVG(income / 1000) AS "avg(k)" FROM patients WHERE age > 30
-- > mean -5000000..5000000 by 1/100000 from 50: CASE WHEN ISFINITE(TRY(CASE WHEN ISFINITE("t"."income") THEN "t"."income" END / 1000.0e0)) THEN TRY(CASE WHEN ISFINITE("t"."income") THEN "t"."income" END / 1000.0e0) END
-- > where ("t"."age" > 30)

SELECT p.region, COUNT(*) FROM patients AS p WHERE p.age > 30 GROUP BY p.region
-- > SELECT region AS "region", COUNT(*) AS "count(*)" FROM patients WHERE age > 30 GROUP BY region
-- > count: every row
-- > where ("t"."age" > 30)
-- > by CASE WHEN STRLEN("t"."region") <= 1000 THEN "t"."region" ELSE LEFT("t"."region", 1000) END: N, S, E, W

FROM patients SELECT COUNT(*)
-- > SELECT COUNT(*) AS "count(*)" FROM patients
-- > count complete: every row

(SELECT COUNT(*) FROM patients)
-- > SELECT COUNT(*) AS "count(*)" FROM patients
-- > count complete: every row

SELECT COUNT(*) /* how many */ FROM patients -- all of them
-- > SELECT COUNT(*) AS "count(*)" FROM patients
-- > count complete: every row

select count ( * ) from PATIENTS where AGE>40;
-- > SELECT COUNT(*) AS "count(*)" FROM patients WHERE age > 40
-- > count: every row
-- > where ("t"."age" > 40)

SELECT COUNT(*) FROM visits
-- > SELECT COUNT(*) AS "count(*)" FROM visits
-- > count: every row

SELECT COUNT(DISTINCT patient_id) FROM visits
-- > SELECT COUNT(DISTINCT patient_id) AS "count(distinct patient_id)" FROM visits
-- > people: every row

SELECT kind, COUNT(*) AS n, SUM(cost) AS total, AVG(minutes) AS mean FROM visits GROUP BY kind
-- > SELECT kind AS "kind", COUNT(*) AS "n", SUM(cost) AS "total", AVG(minutes) AS "mean" FROM visits GROUP BY kind
-- > count: every row
-- > sum -500000..5000000 by 1/10000 from 0: CASE WHEN ISFINITE("t"."cost") THEN "t"."cost" END
-- > mean -300..300 by 1 from 300: "t"."minutes"
-- > by CASE WHEN STRLEN("t"."kind") <= 1000 THEN "t"."kind" ELSE LEFT("t"."kind", 1000) END: check, acute, None

SELECT kind, COUNT(DISTINCT patient_id) AS people FROM visits GROUP BY kind
-- > SELECT kind AS "kind", COUNT(DISTINCT patient_id) AS "people" FROM visits GROUP BY kind
-- > people: every row
-- > by CASE WHEN STRLEN("t"."kind") <= 1000 THEN "t"."kind" ELSE LEFT("t"."kind", 1000) END: check, acute, None

SELECT site, MEDIAN(cost), MAX(minutes) FROM visits WHERE day >= '2023-06-01' GROUP BY site ORDER BY site
-- > SELECT site AS "site", MEDIAN(cost) AS "median(cost)", MAX(minutes) AS "max(minutes)" FROM visits WHERE day >= CAST('2023-06-01' AS DATE) GROUP BY site ORDER BY site ASC
-- > quantile 0..550 by 1 from -50 rank 1/2: CASE WHEN ISFINITE("t"."cost") THEN "t"."cost" END
-- > quantile 0..600 by 1 from 0 rank 1: "t"."minutes"
-- > where (CASE WHEN "t"."day" BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN "t"."day" END >= CAST('2023-06-01' AS DATE))
-- > by CASE WHEN STRLEN("t"."site") <= 1000 THEN "t"."site" ELSE LEFT("t"."site", 1000) END: A, B, C, D

SELECT COUNT(*) FROM visits JOIN sites ON visits.site = sites.code WHERE sites.urban
-- > SELECT COUNT(*) AS "count(*)" FROM visits JOIN sites AS sites ON visits.site = sites.code WHERE sites.urban
-- > count: every row
-- > where "l0"."urban"

SELECT COUNT(*) FROM visits AS v JOIN sites AS s ON s.urban AND (v.site = s.code AND v.cost > 5)
-- > SELECT COUNT(*) AS "count(*)" FROM visits JOIN sites AS s ON visits.site = s.code WHERE s.urban AND visits.cost > 5
-- > count: every row
-- > where "l0"."urban"
-- > where (CASE WHEN ISFINITE("t"."cost") THEN "t"."cost" END > 5.0e0)

SELECT COUNT(*) FROM visits AS v LEFT JOIN sites AS s ON v.site = s.code WHERE s.beds IS NULL OR s.beds < 50
-- > SELECT COUNT(*) AS "count(*)" FROM visits LEFT JOIN sites AS s ON visits.site = s.code WHERE s.beds IS NULL OR s.beds < 50
-- > count: every row
-- > where (("l0"."beds" IS NULL) OR ("l0"."beds" < 50))

SELECT CASE WHEN s.urban THEN 'town' WHEN NOT s.urban THEN 'country' ELSE 'unknown' END AS place, SUM(v.cost) FROM visits v LEFT JOIN sites s ON s.code = v.site GROUP BY place
-- > SELECT CASE WHEN s.urban THEN 'town' WHEN NOT s.urban THEN 'country' ELSE 'unknown' END AS "place", SUM(visits.cost) AS "sum(v.cost)" FROM visits LEFT JOIN sites AS s ON visits.site = s.code GROUP BY CASE WHEN s.urban THEN 'town' WHEN NOT s.urban THEN 'country' ELSE 'unknown' END
-- > sum -500000..5000000 by 1/10000 from 0: CASE WHEN ISFINITE("t"."cost") THEN "t"."cost" END
-- > by CASE WHEN "l0"."urban" THEN 'town' WHEN (NOT "l0"."urban") THEN 'country' ELSE 'unknown' END: town, country, unknown

SELECT MONTH(day) AS month, SUM(minutes) / COUNT(*) AS mean FROM visits GROUP BY month ORDER BY month
-- > SELECT EXTRACT(MONTH FROM day) AS "month", SUM(minutes) / COUNT(*) AS "mean" FROM visits GROUP BY EXTRACT(MONTH FROM day) ORDER BY EXTRACT(MONTH FROM day) ASC
-- > sum 0..600 by 1 from 0: "t"."minutes"
-- > count: every row
-- > by TRY(EXTRACT(MONTH FROM CASE WHEN "t"."day" BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN "t"."day" END)): 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12

SELECT COUNT(*) FROM patients; -- done; DROP TABLE patients
-- > SELECT COUNT(*) AS "count(*)" FROM patients
-- > count complete: every row
