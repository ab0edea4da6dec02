// Reports retired names, British spellings in identifiers, phrases that the language rules exclude,
// comments of more than 100 columns, and type names that two files of src/ export. usage: node
// scripts/lint-vocabulary.mjs [FILE...] (all tracked source, test and documentation files by
// default)
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const { identifiers, british, phrases, sharedTypeNames, ignore } = JSON.parse(
  readFileSync(new URL("vocabulary.json", import.meta.url), "utf8"),
);
const ROOTS = ["src", "dashboard", "test", "docs", "examples", "bench", "recipes", "packages"];
const PAGES = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md"];

const retired = new Map(Object.entries(identifiers));
const spelling = new RegExp(british.join("|"));
const phrase = new RegExp(`\\b(${phrases.join("|")})\\b`, "i");

function listFiles() {
  const files = execFileSync("git", ["ls-files", ...ROOTS, ...PAGES], { cwd: root, encoding: "utf8" })
    .trim()
    .split("\n");
  return files.filter((file) => /\.(tsx?|mjs|md)$/.test(file) && !ignore.some((path) => file.startsWith(path)));
}

/** "quantiseBits" as ["quantize", "bits"]. */
function splitWords(identifier) {
  return identifier.split(/_|(?<=[a-z\d])(?=[A-Z])/).map((part) => part.toLowerCase());
}

/** Columns of a comment; code may have 120. */
const MAX_COMMENT_COLUMNS = 100;

/** A line of a comment that could be wrapped: directives must be on one line. */
const LONG_COMMENT = new RegExp(
  `^(?=.{${MAX_COMMENT_COLUMNS + 1}}) *(//|\\*|/\\*\\*) (?!oxlint|@|- |\\d+\\. |.*https?://)\\S+ \\S+`,
);

/** Problems of one line: what was found, and what to write in its place. */
function* problemsIn(line, isCode, isGenerated) {
  if (isCode && !isGenerated && LONG_COMMENT.test(line))
    yield `the comment is longer than ${MAX_COMMENT_COLUMNS} columns`;
  for (const [word] of line.matchAll(/[A-Za-z_$][\w$]*/g)) {
    const replacement = Object.hasOwn(identifiers, word) ? retired.get(word) : undefined;
    if (replacement !== undefined) yield `"${word}" is retired: ${replacement}`;
    if (splitWords(word).some((part) => spelling.test(part))) yield `"${word}": use the American spelling`;
  }
  const [found] = phrase.exec(line) ?? [];
  if (found !== undefined && (!isCode || /\/\/|\*|["'`]/.test(line)))
    yield `"${found}": see "Language" in docs/CONTRIBUTING.md`;
}

const given = process.argv.slice(2);
let count = 0;
/** The file that exports each type. */
const typeOwners = new Map();
function checkTypeNames(file, text) {
  for (const [, name] of text.matchAll(/^export (?:declare )?(?:abstract )?(?:interface|type|class|enum) (\w+)/gm)) {
    const owner = typeOwners.get(name);
    typeOwners.set(name, owner ?? file);
    if (owner === undefined || sharedTypeNames.includes(name)) continue;
    console.log(`${file}: the type ${name} is also exported by ${owner}: name one of them more precisely`);
    count++;
  }
}
for (const file of given.length > 0 ? given : listFiles()) {
  const text = readFileSync(`${root}/${file}`, "utf8");
  const isCode = !file.endsWith(".md");
  const isGenerated = file.endsWith("_pb.ts");
  if (file.startsWith("src/") && !/(\.test|_pb)\.ts$/.test(file)) checkTypeNames(file, text);
  const lines = text.split("\n");
  lines.forEach((line, i) => {
    for (const problem of problemsIn(line, isCode, isGenerated)) {
      console.log(`${file}:${i + 1}: ${problem}`);
      count++;
    }
  });
}
if (count > 0) {
  console.error(`${count} problems of vocabulary`);
  process.exit(1);
}
