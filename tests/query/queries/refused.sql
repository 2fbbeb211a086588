SELECT * FROM patients
-- > * is not allowed: rows of people are never listed. Ask for keys and aggregates, such as COUNT(*) or AVG(column).

SELECT age FROM patients
-- > age is a column of people's rows, which are never listed. Put it in an aggregate such as AVG(age), or in GROUP BY if its keys are declared.

SELECT region FROM patients GROUP BY region
-- > A question must ask for an aggregate, such as COUNT(*) or AVG(column).

SELECT age, COUNT(*) FROM patients GROUP BY region
-- > age is a column of people's rows, which are never listed. Put it in an aggregate such as AVG(age), or in GROUP BY if its keys are declared.

SELECT DISTINCT region FROM patients
-- > SELECT DISTINCT lists values of people's rows. Ask COUNT(*) ... GROUP BY a column with declared keys.

SELECT COUNT(*) FROM nowhere
-- > There is no protected table 'nowhere'; there is patients, visits. FROM takes such a table, or a subquery that filters or projects one; never a file, a function or VALUES.

SELECT COUNT(*) FROM 'patients.parquet'
-- > There is no protected table 'patients.parquet'; there is patients, visits. FROM takes such a table, or a subquery that filters or projects one; never a file, a function or VALUES.

SELECT COUNT(*) FROM "/etc/passwd"
-- > There is no protected table '/etc/passwd'; there is patients, visits. FROM takes such a table, or a subquery that filters or projects one; never a file, a function or VALUES.

SELECT COUNT(*) FROM read_csv('/etc/passwd')
-- > There is no protected table READ_CSV('/etc/passwd'); there is patients, visits. FROM takes such a table, or a subquery that filters or projects one; never a file, a function or VALUES.

SELECT COUNT(*) FROM read_parquet('patients.parquet')
-- > There is no protected table READ_PARQUET('patients.parquet'); there is patients, visits. FROM takes such a table, or a subquery that filters or projects one; never a file, a function or VALUES.

SELECT COUNT(*) FROM glob('*')
-- > There is no protected table GLOB('*'); there is patients, visits. FROM takes such a table, or a subquery that filters or projects one; never a file, a function or VALUES.

SELECT COUNT(*) FROM duckdb_settings()
-- > There is no protected table DUCKDB_SETTINGS(); there is patients, visits. FROM takes such a table, or a subquery that filters or projects one; never a file, a function or VALUES.

SELECT COUNT(*) FROM information_schema.tables
-- > There is no protected table information_schema.tables; there is patients, visits. FROM takes such a table, or a subquery that filters or projects one; never a file, a function or VALUES.

SELECT COUNT(*) FROM main.patients
-- > There is no protected table main.patients; there is patients, visits. FROM takes such a table, or a subquery that filters or projects one; never a file, a function or VALUES. Did you mean 'patients'?

SELECT COUNT(*) FROM (VALUES (1), (2)) AS t(x)
-- > There is no protected table (VALUES (1), (2)) AS t(x); there is patients, visits. FROM takes such a table, or a subquery that filters or projects one; never a file, a function or VALUES.

SELECT COUNT(*) FROM range(10)
-- > There is no protected table RANGE(0, 10); there is patients, visits. FROM takes such a table, or a subquery that filters or projects one; never a file, a function or VALUES.

SELECT COUNT(*)
-- > A question needs FROM and one protected table: patients, visits.

SELECT 1
-- > A question needs FROM and one protected table: patients, visits.

SELECT COUNT(*) FROM patients, visits
-- > visits has up to 3 rows of a person, and such a table comes first: write FROM visits JOIN patients. Two such tables cannot be joined, but one of them can be a subquery with GROUP BY patient_id.

SELECT COUNT(*) FROM patients AS a JOIN patients AS b ON a.id = b.id
-- > patients cannot be joined with itself: people's rows would be repeated. Put each person's rows together in a subquery, with GROUP BY id.

SELECT COUNT(*) FROM patients CROSS JOIN visits
-- > CROSS JOIN is not allowed between protected tables. Use JOIN or LEFT JOIN on the person.

SELECT COUNT(*) FROM visits JOIN sites ON visits.site <> sites.code
-- > sites can only be joined on its unique key, written with its name: ON your_column = sites.code. Other conditions stand in WHERE.

SELECT COUNT(*) FROM visits JOIN sites ON visits.kind = sites.city
-- > sites can only be joined on its unique key, written with its name: ON your_column = sites.code. Other conditions stand in WHERE.

SELECT COUNT(*) FROM visits JOIN sites ON visits.minutes = sites.code
-- > The join on sites.code compares a number with a text. CAST the first.

SELECT COUNT(*) FROM visits RIGHT JOIN sites ON visits.site = sites.code
-- > RIGHT JOIN is not allowed. Use JOIN or LEFT JOIN on a lookup's key.

SELECT COUNT(*) FROM visits FULL JOIN sites ON visits.site = sites.code
-- > FULL JOIN is not allowed. Use JOIN or LEFT JOIN on a lookup's key.

SELECT COUNT(*) FROM visits NATURAL JOIN sites
-- > NATURAL JOIN is not allowed. Use JOIN or LEFT JOIN on a lookup's key.

SELECT COUNT(*) FROM visits ASOF JOIN sites ON visits.site = sites.code
-- > ASOF JOIN is not allowed. Use JOIN or LEFT JOIN on a lookup's key.

SELECT COUNT(*) FROM patients, LATERAL (SELECT 1) AS l
-- > LATERAL (SELECT 1) AS l cannot be joined: rows of people may only meet a lookup table declared for patients (none), on its unique key, or a protected table of the same register, on the person, so that no row is repeated. Join before protecting, or ask the steward to declare a lookup.

SELECT COUNT(*) FROM patients TABLESAMPLE 10%
-- > SAMPLE in patients TABLESAMPLE SYSTEM (10 PERCENT) is not allowed. Leave it out.

SELECT COUNT(*) FROM patients USING SAMPLE 10 ROWS
-- > Sampling is the mechanism's work, where it pays off in privacy. Ask about the whole table.

SELECT ROW_NUMBER() OVER (ORDER BY age) FROM patients
-- > ROW_NUMBER() OVER (ORDER BY age) is not allowed: a window function gives every row an answer. Ask for an aggregate by group.

SELECT AVG(age) OVER (PARTITION BY region) FROM patients
-- > AVG(age) OVER (PARTITION BY region) is not allowed: a window function gives every row an answer. Ask for an aggregate by group.

SELECT COUNT(*) FROM patients QUALIFY ROW_NUMBER() OVER () = 1
-- > QUALIFY filters by window functions, which give every row an answer. Use HAVING on aggregates.

SELECT COUNT(*) FROM patients WHERE age = (SELECT MAX(age) FROM patients)
-- > (SELECT MAX(age) FROM patients) is not allowed: a subquery inside an expression would read rows without paying. Ask for its value in a query of its own, then write the released number here. For people of another table, join it on the person: JOIN (SELECT person, COUNT(*) AS n FROM other GROUP BY person) AS o; or LEFT JOIN it and write WHERE n IS NULL. For a lookup, JOIN it and write its condition in WHERE.

SELECT COUNT(*) FROM patients WHERE id IN (SELECT patient_id FROM visits)
-- > (SELECT patient_id FROM visits) is not allowed: a subquery inside an expression would read rows without paying. Ask for its value in a query of its own, then write the released number here. For people of another table, join it on the person: JOIN (SELECT person, COUNT(*) AS n FROM other GROUP BY person) AS o; or LEFT JOIN it and write WHERE n IS NULL. For a lookup, JOIN it and write its condition in WHERE.

SELECT COUNT(*) FROM patients WHERE EXISTS (SELECT 1 FROM visits)
-- > EXISTS(SELECT 1 FROM visits) is not allowed: a subquery inside an expression would read rows without paying. Ask for its value in a query of its own, then write the released number here. For people of another table, join it on the person: JOIN (SELECT person, COUNT(*) AS n FROM other GROUP BY person) AS o; or LEFT JOIN it and write WHERE n IS NULL. For a lookup, JOIN it and write its condition in WHERE.

SELECT COUNT(*) FROM (SELECT * FROM patients LIMIT 5) AS few
-- > LIMIT on people's rows picks some of them. Use it in the outer query, on the answer.

SELECT COUNT(*) FROM (SELECT * FROM patients ORDER BY age) AS sorted
-- > ORDER BY in a subquery has no effect: rows of people have no order. Use it on the answer.

SELECT COUNT(*) FROM (SELECT DISTINCT region FROM patients) AS regions
-- > SELECT DISTINCT lists values of people's rows. Ask COUNT(*) ... GROUP BY a column with declared keys.

SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM patients GROUP BY region) AS counts
-- > GROUP BY in a subquery must name the person: GROUP BY id puts each person's rows together. Any other grouping is a question of its own: ask it first, or group in the outer query.

SELECT AVG(m) FROM (SELECT MAX(age) AS m FROM patients) AS top
-- > MAX(age) is not allowed: it is an aggregate. Aggregates stand in SELECT, HAVING or ORDER BY, and not inside each other.

WITH RECURSIVE r AS (SELECT * FROM patients) SELECT COUNT(*) FROM r
-- > WITH RECURSIVE repeats rows. Use WITH for subqueries that only filter or project.

WITH v AS (SELECT 1 AS one UNION ALL SELECT 2) SELECT COUNT(*) FROM v
-- > SELECT 1 AS one UNION ALL SELECT 2 is not allowed: a subquery may only filter or project one table.

SELECT COUNT(*) FROM patients UNION ALL SELECT COUNT(*) FROM visits
-- > UNION joins several questions. Ask them one by one.

SELECT id, COUNT(*) FROM patients GROUP BY id
-- > GROUP BY id would answer about single people. Group by declared keys, or put each person's rows together in a subquery: SELECT AVG(n) FROM (SELECT id, COUNT(*) AS n FROM ... GROUP BY id).

SELECT id % 10 AS last, COUNT(*) FROM patients GROUP BY last
-- > GROUP BY id % 10 would answer about single people. Group by declared keys, or put each person's rows together in a subquery: SELECT AVG(n) FROM (SELECT id, COUNT(*) AS n FROM ... GROUP BY id).

SELECT note, COUNT(*) FROM patients GROUP BY note
-- > GROUP BY note needs values that are known in public, because which values occur is private. Ask the steward to declare keys (declared: grade, region), or write CASE WHEN ... THEN 'value' ELSE 'other' END.

SELECT income, COUNT(*) FROM patients GROUP BY income
-- > GROUP BY income needs values that are known in public, because which values occur is private. Group by steps, such as WIDTH_BUCKET(income, 0, 100000, 10), or by a CASE; or ask the steward to declare keys (declared: grade, region).

SELECT born, COUNT(*) FROM patients GROUP BY born
-- > GROUP BY born needs values that are known in public, because which values occur is private. Ask the steward to declare the first and last date: bounds={'born': ('2020-01-01', '2024-12-31')}, or group by MONTH(born).

SELECT region, COUNT(*) FROM patients GROUP BY CUBE (region)
-- > CUBE, ROLLUP and GROUPING SETS ask several questions. Ask them one by one.

SELECT region, COUNT(*) FROM patients GROUP BY ROLLUP (region)
-- > CUBE, ROLLUP and GROUPING SETS ask several questions. Ask them one by one.

SELECT region, COUNT(*) FROM patients GROUP BY GROUPING SETS ((region), ())
-- > CUBE, ROLLUP and GROUPING SETS ask several questions. Ask them one by one.

SELECT MONTH(born), DAY(born), HOUR(seen), age, COUNT(*) FROM patients GROUP BY ALL
-- > GROUP BY makes 1,080,288 groups; at most 10,000 can be shown. Use fewer keys.

SELECT COUNT(*) FROM patients GROUP BY 3
-- > GROUP BY 3 names no column; there are 1.

SELECT SUM(id) FROM patients
-- > SUM(id) aggregates id, which says who people are. Use COUNT(DISTINCT id) for the number of people or COUNT(*) for the number of rows.

SELECT MAX(id) FROM patients
-- > MAX(id) aggregates id, which says who people are. Use COUNT(DISTINCT id) for the number of people or COUNT(*) for the number of rows.

SELECT COUNT(id) FROM patients
-- > COUNT(id) aggregates id, which says who people are. Use COUNT(DISTINCT id) for the number of people or COUNT(*) for the number of rows.

SELECT COUNT(DISTINCT note) FROM patients
-- > COUNT(DISTINCT note) is not allowed: only people can be counted once, by COUNT(DISTINCT id), and values that are known in public. GROUP BY note needs values that are known in public, because which values occur is private. Ask the steward to declare keys (declared: grade, region), or write CASE WHEN ... THEN 'value' ELSE 'other' END.

SELECT COUNT(DISTINCT id, age) FROM patients
-- > COUNT(DISTINCT CASE WHEN id IS NULL THEN NULL WHEN age IS... is not allowed: only people can be counted once, by COUNT(DISTINCT id), and values that are known in public, by COUNT(DISTINCT x).

SELECT AVG(epsilon) FROM patients
-- > AVG(epsilon) needs bounds: without them one person could move it without limit. Ask the steward to declare bounds for epsilon, or write AVG(LEAST(GREATEST(epsilon, 0), 100)) with bounds of yours.

SELECT SUM(DISTINCT income) FROM patients
-- > SUM(DISTINCT income) is not allowed: DISTINCT and ORDER BY inside an aggregate. Leave them out.

SELECT SUM(note) FROM patients
-- > SUM(note) needs a number, got a text. Use COUNT(*), or CAST it.

SELECT AVG(born) FROM patients
-- > AVG(born) needs a number, got a date. Count days instead, by DATE_DIFF('day', DATE '2020-01-01', born). If the steward declared bounds for the date, the days have bounds too.

SELECT SUM(1) FROM patients
-- > SUM(1) is over a constant. Ask for COUNT(*), and do arithmetic on the answer.

SELECT SUM(LN(age - 50)) FROM patients
-- > SUM(LN(age - 50)) needs bounds: without them one person could move it without limit. Write SUM(LEAST(GREATEST(LN(age - 50), 0), 100)) with bounds of yours.

SELECT SUM(income / age) FROM patients
-- > SUM(income / age) needs bounds: without them one person could move it without limit. Write SUM(LEAST(GREATEST(income / age, 0), 100)) with bounds of yours.

SELECT MODE(note) FROM patients
-- > MODE(note) chooses among values that are known in public. GROUP BY note needs values that are known in public, because which values occur is private. Ask the steward to declare keys (declared: grade, region), or write CASE WHEN ... THEN 'value' ELSE 'other' END.

SELECT MODE(DISTINCT region) FROM patients
-- > MODE(DISTINCT region) is not allowed. Write MODE(x).

SELECT STRING_AGG(note, ',') FROM patients
-- > LISTAGG(note, ',') is not an aggregate that can be released. Use COUNT, COUNT(DISTINCT person), SUM, AVG, VARIANCE, STDDEV, VAR_POP, STDDEV_POP, MEDIAN, QUANTILE_CONT, PERCENTILE_CONT, MIN, MAX, MODE, COVAR_POP, COVAR_SAMP, CORR, REGR_SLOPE or REGR_INTERCEPT.

SELECT LIST(age) FROM patients
-- > ARRAY_AGG(age) is not an aggregate that can be released. Use COUNT, COUNT(DISTINCT person), SUM, AVG, VARIANCE, STDDEV, VAR_POP, STDDEV_POP, MEDIAN, QUANTILE_CONT, PERCENTILE_CONT, MIN, MAX, MODE, COVAR_POP, COVAR_SAMP, CORR, REGR_SLOPE or REGR_INTERCEPT.

SELECT FIRST(note) FROM patients
-- > FIRST(note) is not an aggregate that can be released. Use COUNT, COUNT(DISTINCT person), SUM, AVG, VARIANCE, STDDEV, VAR_POP, STDDEV_POP, MEDIAN, QUANTILE_CONT, PERCENTILE_CONT, MIN, MAX, MODE, COVAR_POP, COVAR_SAMP, CORR, REGR_SLOPE or REGR_INTERCEPT.

SELECT ANY_VALUE(note) FROM patients
-- > ANY_VALUE(note) is not on the list of what is known to be safe. Use comparisons, AND/OR/NOT, IN, BETWEEN, LIKE, IS NULL, CASE, arithmetic, date parts, CAST or a function of docs/sql.md.

SELECT ARG_MAX(note, age) FROM patients
-- > ARG_MAX(note, age) is not an aggregate that can be released. Use COUNT, COUNT(DISTINCT person), SUM, AVG, VARIANCE, STDDEV, VAR_POP, STDDEV_POP, MEDIAN, QUANTILE_CONT, PERCENTILE_CONT, MIN, MAX, MODE, COVAR_POP, COVAR_SAMP, CORR, REGR_SLOPE or REGR_INTERCEPT.

SELECT MIN(age, 3) FROM patients
-- > COUNT in MIN(age, 3) is not allowed. Leave it out.

SELECT HISTOGRAM(age) FROM patients
-- > HISTOGRAM(age) is not on the list of what is known to be safe. Use comparisons, AND/OR/NOT, IN, BETWEEN, LIKE, IS NULL, CASE, arithmetic, date parts, CAST or a function of docs/sql.md. Instead of HISTOGRAM, use COUNT(*) with GROUP BY WIDTH_BUCKET(x, 0, 100, 10), or with GROUP BY a declared key.

SELECT APPROX_COUNT_DISTINCT(note) FROM patients
-- > APPROX_COUNT_DISTINCT(note) is not an aggregate that can be released. Use COUNT, COUNT(DISTINCT person), SUM, AVG, VARIANCE, STDDEV, VAR_POP, STDDEV_POP, MEDIAN, QUANTILE_CONT, PERCENTILE_CONT, MIN, MAX, MODE, COVAR_POP, COVAR_SAMP, CORR, REGR_SLOPE or REGR_INTERCEPT.

SELECT KURTOSIS(age) FROM patients
-- > KURTOSIS(age) is not an aggregate that can be released. Use COUNT, COUNT(DISTINCT person), SUM, AVG, VARIANCE, STDDEV, VAR_POP, STDDEV_POP, MEDIAN, QUANTILE_CONT, PERCENTILE_CONT, MIN, MAX, MODE, COVAR_POP, COVAR_SAMP, CORR, REGR_SLOPE or REGR_INTERCEPT.

SELECT CORR(age, note) FROM patients
-- > AVG(note) needs a number, got a text. Use COUNT(*), or CAST it.

SELECT BOOL_OR(smoker) FROM patients
-- > BOOL_OR(CAST(smoker AS BOOLEAN)) is not an aggregate that can be released. Use COUNT, COUNT(DISTINCT person), SUM, AVG, VARIANCE, STDDEV, VAR_POP, STDDEV_POP, MEDIAN, QUANTILE_CONT, PERCENTILE_CONT, MIN, MAX, MODE, COVAR_POP, COVAR_SAMP, CORR, REGR_SLOPE or REGR_INTERCEPT.

SELECT QUANTILE_CONT(age, [0.1, 0.9]) + 1 FROM patients
-- > QUANTILE_CONT(age, [0.1, 0.9]) needs a number from 0 to 1 written out, or a list of such numbers as a column.

SELECT QUANTILE_CONT(age, [0.1, 0.9]) AS q, region FROM patients GROUP BY region ORDER BY 3
-- > ORDER BY 3 names no column; there are 2, and a list is one of them.

SELECT QUANTILE_CONT(age, []) FROM patients
-- > QUANTILE_CONT(age, []) needs at least one number from 0 to 1.

SELECT QUANTILE_CONT(age, [0.1, 1.1]) FROM patients
-- > QUANTILE_CONT(age, 1.1) needs a number from 0 to 1 written out, or a list of such numbers as a column.

SELECT QUANTILE_CONT(age, [0.1, 0.1]) FROM patients
-- > QUANTILE_CONT(age, [0.1, 0.1]) has a number twice. Write every number once.

SELECT QUANTILE_CONT(age, 1.5) FROM patients
-- > QUANTILE_CONT(age, 1.5) needs a number from 0 to 1 written out, or a list of such numbers as a column.

SELECT QUANTILE_CONT(age, age / 120) FROM patients
-- > QUANTILE_CONT(age, age / 120) needs a number from 0 to 1 written out, or a list of such numbers as a column.

SELECT AVG(MAX(age)) FROM patients
-- > MAX(age) is not allowed: it is an aggregate. Aggregates stand in SELECT, HAVING or ORDER BY, and not inside each other.

SELECT COUNT(*) FROM patients WHERE COUNT(*) > 3
-- > COUNT(*) is not allowed: it is an aggregate. Aggregates stand in SELECT, HAVING or ORDER BY, and not inside each other.

SELECT COUNT(*) FROM patients WHERE age
-- > WHERE needs a condition, got age, which is a number.

SELECT COUNT(*) FROM patients WHERE age = 'forty'
-- > age = 'forty' mixes number and text. CAST one side to the type of the other.

SELECT COUNT(*) FROM patients WHERE note > 3
-- > note > 3 mixes number and text. CAST one side to the type of the other.

SELECT COUNT(*) FROM patients WHERE age = NULL
-- > age = NULL compares with NULL, which is never true. Write IS NULL or IS NOT NULL.

SELECT COUNT(*) FROM patients WHERE age IS NOT DISTINCT FROM NULL
-- > age IS NOT DISTINCT FROM NULL compares with NULL. Write IS NULL or IS NOT NULL.

SELECT COUNT(*) FROM patients WHERE born > 'yesterday'
-- > 'yesterday' is not a valid date. Write it as '2024-12-31', or as '2024-12-31 23:59:00'.

SELECT COUNT(*) FROM patients WHERE seen > '2024-01-01T00:00:00+02:00'
-- > '2024-01-01T00:00:00+02:00' is not a valid date. Write it as '2024-12-31', or as '2024-12-31 23:59:00'.

SELECT COUNT(*) FROM patients WHERE shoe_size > 40
-- > There is no column 'shoe_size'; there is age, born, children, epsilon, grade, id, income, note, region, seen, smoker, weight.

SELECT COUNT(*) FROM patients WHERE p.age > 40
-- > 'p' is no table of this query; it has patients.

SELECT COUNT(*) FROM patients WHERE error(note)
-- > ERROR(note) is not on the list of what is known to be safe. Use comparisons, AND/OR/NOT, IN, BETWEEN, LIKE, IS NULL, CASE, arithmetic, date parts, CAST or a function of docs/sql.md.

SELECT COUNT(*) FROM patients WHERE CASE WHEN id = 7 THEN error('found') ELSE true END
-- > ERROR('found') is not on the list of what is known to be safe. Use comparisons, AND/OR/NOT, IN, BETWEEN, LIKE, IS NULL, CASE, arithmetic, date parts, CAST or a function of docs/sql.md.

SELECT COUNT(*) FROM patients WHERE note ~ '.*'
-- > REGEXP_MATCHES(note, '.*') is not allowed: patterns other than LIKE and ILIKE differ between engines. Write LIKE, STARTS_WITH, ENDS_WITH or CONTAINS.

SELECT COUNT(*) FROM patients WHERE REGEXP_MATCHES(note, 'a+')
-- > REGEXP_MATCHES(note, 'a+') is not allowed: patterns other than LIKE and ILIKE differ between engines. Write LIKE, STARTS_WITH, ENDS_WITH or CONTAINS.

SELECT COUNT(*) FROM patients WHERE note SIMILAR TO 'a'
-- > note SIMILAR TO 'a' is not allowed: patterns other than LIKE and ILIKE differ between engines. Write LIKE, STARTS_WITH, ENDS_WITH or CONTAINS.

SELECT COUNT(*) FROM patients WHERE note LIKE region
-- > note LIKE region needs a text and a pattern in quotes, such as name LIKE 'A%'.

SELECT COUNT(*) FROM patients WHERE note LIKE 'a!%' ESCAPE '!'
-- > note LIKE 'a!%' ESCAPE '!' is not allowed: patterns other than LIKE and ILIKE differ between engines. Write LIKE, STARTS_WITH, ENDS_WITH or CONTAINS.

SELECT COUNT(*) FROM patients WHERE RANDOM() < 0.5
-- > RANDOM() is not allowed: the same question must mean the same tomorrow. Write the value out, such as DATE '2024-12-31'.

SELECT COUNT(*) FROM patients WHERE born < CURRENT_DATE
-- > CURRENT_DATE is not allowed: the same question must mean the same tomorrow. Write the value out, such as DATE '2024-12-31'.

SELECT COUNT(*) FROM patients WHERE seen < NOW()
-- > NOW() is not on the list of what is known to be safe. Use comparisons, AND/OR/NOT, IN, BETWEEN, LIKE, IS NULL, CASE, arithmetic, date parts, CAST or a function of docs/sql.md.

SELECT COUNT(*) FROM patients WHERE note = GETENV('HOME')
-- > GETENV('HOME') is not on the list of what is known to be safe. Use comparisons, AND/OR/NOT, IN, BETWEEN, LIKE, IS NULL, CASE, arithmetic, date parts, CAST or a function of docs/sql.md.

SELECT COUNT(*) FROM patients WHERE note = $1
-- > $1 is not allowed: this parameter has no value. Give one: params=[40] for ?, params={'age': 40} for $age, or --param age=40.

SELECT COUNT(*) FROM patients WHERE age = ?
-- > ? is not allowed: this parameter has no value. Give one: params=[40] for ?, params={'age': 40} for $age, or --param age=40.

SELECT COUNT(*) FROM patients WHERE [age][1] = 3
-- > [age][1] is not on the list of what is known to be safe. Use comparisons, AND/OR/NOT, IN, BETWEEN, LIKE, IS NULL, CASE, arithmetic, date parts, CAST or a function of docs/sql.md.

SELECT COUNT(*) FROM patients WHERE {'a': age}.a = 3
-- > {'a': age}.a is not on the list of what is known to be safe. Use comparisons, AND/OR/NOT, IN, BETWEEN, LIKE, IS NULL, CASE, arithmetic, date parts, CAST or a function of docs/sql.md.

SELECT COUNT(*) FROM patients WHERE LIST_FILTER([age], x -> x > 3) IS NOT NULL
-- > LIST_FILTER([age], LAMBDA x : x > 3) is not on the list of what is known to be safe. Use comparisons, AND/OR/NOT, IN, BETWEEN, LIKE, IS NULL, CASE, arithmetic, date parts, CAST or a function of docs/sql.md.

SELECT COUNT(*) FROM patients WHERE REPEAT(note, 1000000000) = 'x'
-- > REPEAT(note, 1000000000) is not on the list of what is known to be safe. Use comparisons, AND/OR/NOT, IN, BETWEEN, LIKE, IS NULL, CASE, arithmetic, date parts, CAST or a function of docs/sql.md.

SELECT COUNT(*) FROM patients WHERE SUBSTRING(note, age) = 'x'
-- > SUBSTRING(note, age) needs a whole number from 1 to 1,000,000 written out.

SELECT COUNT(*) FROM patients WHERE born + INTERVAL (age) DAY > seen
-- > born + INTERVAL (age) DAY must add a fixed interval to a date, such as day + INTERVAL 30 DAY.

SELECT COUNT(*) FROM patients WHERE CAST(age AS DATE) = '2024-01-01'
-- > CAST(age AS DATE) is not possible. Cast between numbers, texts, booleans, dates, timestamps.

SELECT COUNT(*) FROM patients WHERE note COLLATE nocase = 'x'
-- > note COLLATE nocase is not on the list of what is known to be safe. Use comparisons, AND/OR/NOT, IN, BETWEEN, LIKE, IS NULL, CASE, arithmetic, date parts, CAST or a function of docs/sql.md.

SELECT COUNT(*) FROM patients WHERE (age, region) IN ((1, 'N'))
-- > (age, region) is not on the list of what is known to be safe. Use comparisons, AND/OR/NOT, IN, BETWEEN, LIKE, IS NULL, CASE, arithmetic, date parts, CAST or a function of docs/sql.md.

SELECT COUNT(*) FROM patients WHERE age IN (1, NULL)
-- > age IN (1, NULL) compares with NULL, which is never true. Write IS NULL or IS NOT NULL.

SELECT COUNT(*) FROM patients WHERE age BETWEEN SYMMETRIC 3 AND 1
-- > SYMMETRIC in (age BETWEEN 3 AND 1 OR age BETWEEN 1 AND 3) is not allowed. Leave it out.

SELECT COUNT(*) FROM patients WHERE age > 1e400
-- > The number 1e400 is too large or too small. Write one below 10^36, with an exponent from -99 on.

SELECT COUNT(*) FROM patients AT (VERSION => 1)
-- > WHEN in patients AT (VERSION => 1) is not allowed. Leave it out.

SELECT COUNT(*) FROM patients HAVING AVG(age)
-- > HAVING needs a condition on released values, such as COUNT(*) > 100.

SELECT COUNT(*) FROM patients HAVING age > 3
-- > age is a column of people's rows, which are never listed. Put it in an aggregate such as AVG(age), or in GROUP BY if its keys are declared.

SELECT region, COUNT(*) FROM patients GROUP BY region HAVING region + 1 > 2
-- > region + 1 mixes number and text. CAST one side to the type of the other.

SELECT region, COUNT(*) FROM patients GROUP BY region ORDER BY age
-- > age is a column of people's rows, which are never listed. Put it in an aggregate such as AVG(age), or in GROUP BY if its keys are declared.

SELECT region, COUNT(*) FROM patients GROUP BY region ORDER BY 5
-- > ORDER BY 5 names no column; there are 2.

SELECT region, COUNT(*) FROM patients GROUP BY region LIMIT 10%
-- > LIMIT_OPTIONS in LIMIT 10 PERCENT is not allowed. Leave it out.

SELECT COUNT(*) AS n, SUM(age) AS n FROM patients
-- > Two columns are named 'n'. Give one of them another name with AS.

SELECT COUNT(*) || 'x' AS t FROM patients
-- > COUNT(*) || 'x' needs a text, got a number. CAST it AS VARCHAR first.

SELECT COLUMNS('a.*') FROM patients
-- > COLUMNS('a.*') is not allowed: rows of people are never listed. Ask for keys and aggregates, such as COUNT(*) or AVG(column).

SELECT COUNT(*) INTO other FROM patients
-- > SELECT INTO writes a table, and a question cannot write.

SELECT COUNT(*) FROM patients; DROP TABLE patients
-- > One question at a time: this text has 2 statements.

SELECT COUNT(*) FROM patients; SELECT COUNT(*) FROM visits
-- > One question at a time: this text has 2 statements.

SELECT COUNT(*) FROM patients /* ; */ ; DELETE FROM patients -- hidden
-- > One question at a time: this text has 2 statements.

SELECT COUNT(*) FROM patients WHERE age > 3 /* -- */ OR id IN (SELECT 1)
-- > (SELECT 1) is not allowed: a subquery inside an expression would read rows without paying. Ask for its value in a query of its own, then write the released number here. For people of another table, join it on the person: JOIN (SELECT person, COUNT(*) AS n FROM other GROUP BY person) AS o; or LEFT JOIN it and write WHERE n IS NULL. For a lookup, JOIN it and write its condition in WHERE.

DROP TABLE patients
-- > DROP is not a question. Only SELECT is answered.

DELETE FROM patients
-- > DELETE is not a question. Only SELECT is answered.

INSERT INTO patients VALUES (1)
-- > INSERT is not a question. Only SELECT is answered.

UPDATE patients SET age = 3
-- > UPDATE is not a question. Only SELECT is answered.

COPY patients TO 'out.csv'
-- > COPY is not a question. Only SELECT is answered.

COPY (SELECT * FROM patients) TO 'out.csv'
-- > COPY is not a question. Only SELECT is answered.

EXPORT DATABASE 'x'
-- > EXPORT is not a question. Only SELECT is answered.

ATTACH 'other.db'
-- > ATTACH is not a question. Only SELECT is answered.

PRAGMA database_list
-- > PRAGMA is not a question. Only SELECT is answered.

SET enable_external_access = true
-- > SET is not a question. Only SELECT is answered.

INSTALL httpfs
-- > INSTALL is not a question. Only SELECT is answered.

LOAD httpfs
-- > LOAD is not a question. Only SELECT is answered.

CALL pragma_version()
-- > CALL is not a question. Only SELECT is answered.

DESCRIBE patients
-- > DESCRIBE is not a question. Only SELECT is answered. `tables` lists tables, their columns, bounds and keys.

SUMMARIZE patients
-- > SUMMARIZE is not a question. Only SELECT is answered. `tables` lists tables, their columns, bounds and keys.

EXPLAIN ANALYZE SELECT COUNT(*) FROM patients
-- > EXPLAIN is not a question. Only SELECT is answered.

PIVOT patients ON region USING COUNT(*)
-- > PIVOT is not a question. Only SELECT is answered. Write SELECT * FROM (...) PIVOT (SUM(n) FOR kind IN ('a', 'b')).

PREPARE p AS SELECT COUNT(*) FROM patients
-- > PREPARE is not a question. Only SELECT is answered.

SELECT COUNT(* FROM patients
-- > This is not SQL that DuckDB's dialect allows. Check brackets, quotes and commas.

SELECT 'unclosed FROM patients
-- > This is not SQL that DuckDB's dialect allows. Check brackets, quotes and commas.

;
-- > The question is empty. Write a SELECT.

SELECT SUM(CAST(age AS DECIMAL(50, 2))) FROM patients
-- > DECIMAL(50, 2) is not a type. DECIMAL(width, scale) has a width from 1 to 38 and a scale of at most that.

SELECT CASE WHEN COUNT(*) > 5 THEN 'a' ELSE 1 END + 1 AS odd FROM patients
-- > CASE WHEN COUNT(*) > 5 THEN 'a' ELSE 1 END mixes number and text. CAST one side to the type of the other.

SELECT COUNT(*) FROM patients WHERE seen - DATE '2021-01-01' > 3
-- > seen - CAST('2021-01-01' AS DATE) is the time between two timestamps. Count its days, hours or the like: DATE_DIFF('day', CAST('2021-01-01' AS DATE), seen).

SELECT COUNT(*) FROM patients WHERE grade = "A"
-- > There is no column 'A'; there is age, born, children, epsilon, grade, id, income, note, region, seen, smoker, weight. A text stands in single quotes: 'A'.

SELECT MONTHNAME(born) AS k, COUNT(*) FROM patients GROUP BY k
-- > MONTHNAME(born) is not allowed: names of months differ between languages. Use MONTH(day), or DATE_TRUNC('month', day) as a key.

SELECT DAYNAME(born) AS k, COUNT(*) FROM patients GROUP BY k
-- > DAYNAME(born) is not allowed: names of days differ between languages. Use ISODOW(day): 1 is Monday, 7 is Sunday.

SELECT STRFTIME(born, '%Y') AS k, COUNT(*) FROM patients GROUP BY k
-- > STRFTIME(born, '%Y') is not allowed: formats differ between engines. Use YEAR(day), MONTH(day) and the like, DATE_TRUNC('month', day), or CAST(day AS VARCHAR).

SELECT COUNT(*) FROM patients WHERE WEEKDAY(born) = 3
-- > WEEKDAY(born) is not on the list of what is known to be safe. Use comparisons, AND/OR/NOT, IN, BETWEEN, LIKE, IS NULL, CASE, arithmetic, date parts, CAST or a function of docs/sql.md. Instead of WEEKDAY, use DAYOFWEEK(day), where 0 is Sunday, or ISODOW(day), where 7 is Sunday.
