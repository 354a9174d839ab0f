// Counts what makes sources slow to read or to test: long lines, long files, small files with one importer, vocabulary
// that is not of the field (in comments, titles of tests and documents), and uses of the clock, timers and randomness
// of the machine without a reason. Without options it prints the counts; with --list also the places; with --check it
// fails when a limit is exceeded.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const check = process.argv.includes('--check');
const list = check || process.argv.includes('--list');

const limits = { longLines: 0, longFiles: 0, smallFiles: 20, vocabulary: 0, notInjected: 0 };

const maxColumns = 120;
const maxLines = 400;
/** In characters. */
const maxLength = 15 * 1024;
const smallLines = 30;

/** Files that export what other packages import. */
const entryPoint = /\/src\/(?:index|internal|runtime|storage-adapter)\.ts$/;

/** A file above {@link maxLines} or {@link maxLength} states why it is one file: `// One file: <reason>`. */
const reason = /^\/\/ One file: \S/m;

/** Words that the glossary replaces by a term of the field; see docs/reference/glossary.md. */
const vocabulary =
  /\b(tells?|told|looked at|looks? after|looked after|said|whoever|nobody|somebody|surroundings|patience|anew|in vain|mended)\b/i;

/** Files whose titles of tests are checked for the same words: titles are the specification that a failure prints. */
const hasTitles = /\.test\.ts$|^packages\/conformance\/src\//;
/** A title: the first argument of a call that registers a test, or the property `title` of a case. */
const title =
  /(?<![\w.])(?:(?:test\w*|ava|\w*Test|(?:with|on)[A-Z]\w*)(?:\.\w+)*\(|title:)\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g;

/**
 * Time, timers and randomness are parameters (`Clock`, `random`). A file that calls those of the machine states why:
 * `// Not injected: <reason>`. A reference without a call, such as a default, and limits of sockets are no such calls.
 */
const machine =
  /(?<!\.)\b(?:setTimeout|setInterval|Math\.random|Date\.now|performance\.now)\(|\bnew Date\(\)|\bprocess\.hrtime\b|\bsetTimeout as\b/;
const notInjected = /^\s*(?:\/\/|\*|\/\*\*).*\bNot injected: \S/m;
/** Files that may use the clock of the machine: that of `Clock`, and packages for measurements and for tests. */
const mayUseMachine =
  /^(?:packages\/(?:bench|conformance|create-keelson|test-support|testing)|examples|benchmarks|test)\/|\/runtime\/clock\.ts$/;

/**
 * A line without the content of its literals, for the check of line lengths: the formatter does not break literals. In
 * a comment, links and directives of the linter are left out instead.
 */
const withoutTexts = (line) =>
  /^\s*(?:\/\/|\/?\*)/.test(line)
    ? line.replace(/\bhttps?:\S+|biome-ignore.*/, '')
    : line.replace(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*(?:`|$)|\/(?:[^/\\]|\\.)+\/[a-z]*/g, "''");

const filesOf = (...patterns) =>
  execFileSync('git', ['ls-files', ...patterns], { cwd: root, encoding: 'utf8' })
    .split('\n')
    // The dictionary of SPDY is data that its specification prescribes.
    .filter((file) => file !== '' && !file.includes('/fixtures/') && !file.endsWith('spdy/dictionary.ts'))
    .map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }));
const files = filesOf('*.ts', '*.mjs', '*.js');
const sources = files.filter(({ file }) => /\/src\/.*\.ts$/.test(file));

const found = { longLines: [], longFiles: [], smallFiles: [], vocabulary: [], notInjected: [] };

for (const { file, text } of files) {
  const isChecked = /\/src\/.*\.ts$/.test(file) && !mayUseMachine.test(file) && !notInjected.test(text);
  text.split('\n').forEach((line, index) => {
    const place = `${file}:${index + 1}`;
    if (line.length > maxColumns && withoutTexts(line).length > maxColumns) found.longLines.push(place);
    const comment = /^\s*(?:\/\/|\/?\*)(.*)$/.exec(line)?.[1];
    if (comment === undefined && isChecked && machine.test(withoutTexts(line))) found.notInjected.push(place);
    if (comment !== undefined && vocabulary.test(comment)) found.vocabulary.push(`${place}: ${comment.trim()}`);
  });
  for (const { 2: words = '', index } of hasTitles.test(file) ? text.matchAll(title) : []) {
    const line = text.slice(0, index).split('\n').length;
    if (vocabulary.test(words)) found.vocabulary.push(`${file}:${line}: ${words}`);
  }
}

for (const { file, text } of filesOf('*.md', ':!docs/reference/glossary.md')) {
  text.split('\n').forEach((line, index) => {
    // Names in code can be those of others.
    if (vocabulary.test(line.replace(/`[^`]*`/g, ''))) found.vocabulary.push(`${file}:${index + 1}: ${line.trim()}`);
  });
}

const lineCount = (text) => text.split('\n').length - 1;
const importers = new Map();
for (const { file, text } of sources) {
  for (const [, specifier] of text.matchAll(/\bfrom\s+'(\.[^']+)'|\bimport\(\s*'(?:\.[^']+)'\s*\)/g)) {
    if (specifier === undefined) continue;
    const target = join(dirname(file), specifier);
    importers.set(target, (importers.get(target) ?? new Set()).add(file));
  }
}
for (const { file, text } of sources) {
  const lines = lineCount(text);
  if ((lines > maxLines || text.length > maxLength) && !reason.test(text.slice(0, 600)))
    found.longFiles.push(`${file}: ${lines} lines, ${text.length} characters`);
  // Small files of examples are permitted, because readers see the examples file by file.
  if (file.startsWith('examples/')) continue;
  const [importer, ...others] = importers.get(file) ?? [];
  // An entry point stands for the importers in other packages.
  if (lines < smallLines && importer !== undefined && others.length === 0 && !entryPoint.test(importer)) {
    found.smallFiles.push(`${file}: ${lines} lines, imported by ${importer}`);
  }
}

process.stdout.write(
  `${sources.length} source files, ${sources.reduce((sum, { text }) => sum + lineCount(text), 0)} lines\n`,
);
let exceeded = false;
for (const [name, places] of Object.entries(found)) {
  const over = places.length > limits[name];
  exceeded ||= over;
  process.stdout.write(`${name}: ${places.length} (limit ${limits[name]})\n`);
  if (list && (over || !check)) for (const place of places) process.stdout.write(`  ${place}\n`);
}
process.exitCode = check && exceeded ? 1 : 0;
