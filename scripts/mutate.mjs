// Plants one-line breaks in a source folder and reports how many of them a test command detects.
//
//   node scripts/mutate.mjs FOLDER [--count 10] [--seed N] [--at-least N] [--timeout SECONDS] -- COMMAND [ARGUMENT...]
//   node scripts/mutate.mjs packages/core/src/registry -- npx ava 'packages/core/dist/test/registry/**'
//
// Everything happens in a copy of the workspace in the temporary directory; the working tree is never changed. A break
// negates a condition, swaps an operator or a boolean, replaces a number by 0 (0 by 1), or deletes a statement. A break
// that the compiler rejects, or that leaves the compiled file unchanged, does not count and is replaced by another one.
// The seed is printed; the same seed on the same sources plants the same breaks. `--at-least` makes fewer detected
// breaks a failure. The workspace must be built. `timeout` of coreutils is used.
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The kinds of breaks: each returns the changed lines that it can make of one line. */
const operators = [
  (line) => replacements(line, / === /g, ' !== '),
  (line) => replacements(line, / !== /g, ' === '),
  (line) => replacements(line, / && /g, ' || '),
  (line) => replacements(line, / \|\| /g, ' && '),
  (line) => replacements(line, / < /g, ' >= '),
  (line) => replacements(line, / > /g, ' <= '),
  (line) => replacements(line, / <= /g, ' > '),
  (line) => replacements(line, / >= /g, ' < '),
  (line) => replacements(line, / \+ /g, ' - '),
  (line) => replacements(line, / - /g, ' + '),
  (line) => replacements(line, /\btrue\b/g, 'false'),
  (line) => replacements(line, /\bfalse\b/g, 'true'),
  (line) => replacements(line, /(?<![\w.'"`])\d+(?![\w.'"`])/g, (number) => (Number(number) === 0 ? '1' : '0')),
  (line) => replacements(line, /\bif \((.+?)\)(?= [a-z{]|$)/g, (_match, condition) => `if (!(${condition}))`),
  (line) => (/^\s*(throw |delete |await |[\w.#]+(\?\.)?\(|[\w.#?[\]]+ \??\??[+-]?= ).*;$/.test(line) ? [''] : []),
];

function replacements(line, pattern, replacement) {
  return [...line.matchAll(pattern)].map((match) => {
    const [text] = match;
    const changed = typeof replacement === 'string' ? replacement : replacement(...match);
    return line.slice(0, match.index) + changed + line.slice(match.index + text.length);
  });
}

function* sourcesOf(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (['node_modules', 'dist', 'test'].includes(entry.name)) continue;
    if (entry.isDirectory()) yield* sourcesOf(join(folder, entry.name));
    else if (entry.name.endsWith('.ts') && !entry.name.endsWith('.d.ts')) yield join(folder, entry.name);
  }
}

/** All breaks of a folder in a fixed order. */
function breaksOf(folder) {
  const breaks = [];
  for (const file of [...sourcesOf(folder)].sort()) {
    for (const [index, line] of readFileSync(file, 'utf8').split('\n').entries()) {
      if (/^\s*(\/\/|\/?\*|import |export (type|\{)|type |readonly )/.test(line)) continue;
      for (const operator of operators) {
        for (const changed of operator(line)) breaks.push({ file, index, line, changed });
      }
    }
  }
  return breaks;
}

/** Random numbers from 0 to below 1 (mulberry32). */
function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Copies the workspace. Libraries are links to the originals, links to workspace packages point into the copy. */
function copyWorkspace(target) {
  const skipped = (path) => ['node_modules', '.git'].includes(basename(path));
  cpSync(root, target, { recursive: true, verbatimSymlinks: true, filter: (path) => !skipped(path) });
  linkLibraries(join(root, 'node_modules'), join(target, 'node_modules'));
  for (const group of ['packages', 'adapters', 'examples', '.']) {
    for (const name of readdirSync(join(root, group))) {
      const modules = join(root, group, name, 'node_modules');
      if (name !== 'node_modules' && existsSync(modules))
        symlinkSync(modules, join(target, group, name, 'node_modules'));
    }
  }
}

function linkLibraries(from, to) {
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from)) {
    const path = join(from, name);
    const isLink = lstatSync(path).isSymbolicLink();
    if (isLink) symlinkSync(readlinkSync(path), join(to, name));
    else if (name === '@keelson') linkLibraries(path, join(to, name));
    else symlinkSync(path, join(to, name));
  }
}

function projectOf(folder) {
  for (let path = folder; ; path = dirname(path)) {
    if (existsSync(join(path, 'tsconfig.json'))) return path;
  }
}

function parseWords(words) {
  const end = words.indexOf('--');
  const options = { count: 10, seed: Math.floor(Math.random() * 2 ** 31), 'at-least': 0, timeout: 300 };
  const [folder, ...rest] = words.slice(0, end);
  for (let i = 0; i < rest.length; i += 2) options[rest[i].replace(/^--/, '')] = Number(rest[i + 1]);
  const command = words.slice(end + 1);
  if (end < 1 || command.length === 0 || Object.values(options).some(Number.isNaN))
    throw new Error('usage: mutate.mjs FOLDER [--count N] [--seed N] [--at-least N] [--timeout SECONDS] -- COMMAND');
  return { folder, command, ...options };
}

function main() {
  const { folder, command, count, seed, timeout, 'at-least': atLeast } = parseWords(process.argv.slice(2));
  const copy = mkdtempSync(join(tmpdir(), 'keelson-mutate-'));
  try {
    copyWorkspace(copy);
    // Ends the whole process group: a break can make a process of the test runner loop endlessly.
    const run = (file, args) =>
      spawnSync('timeout', ['--signal=KILL', String(timeout), file, ...args], { cwd: copy, encoding: 'utf8' });
    const passes = () => run(command[0], command.slice(1)).status === 0;
    const project = projectOf(resolve(copy, folder));
    const compiles = () => run(join(root, 'node_modules/.bin/tsc'), ['-b', project]).status === 0;
    const compiledOf = (file) =>
      readFileSync(join(project, 'dist', relative(project, file)).replace(/\.ts$/, '.js'), 'utf8');
    process.stdout.write(`seed ${seed}\n`);
    if (!compiles() || !passes()) throw new Error('the command fails without a break');

    const random = randomFrom(seed);
    const breaks = breaksOf(resolve(copy, folder));
    let planted = 0;
    let detected = 0;
    while (planted < count && breaks.length > 0) {
      const [chosen] = breaks.splice(Math.floor(random() * breaks.length), 1);
      const { file, index, line, changed } = chosen;
      const original = readFileSync(file, 'utf8');
      const before = compiledOf(file);
      writeFileSync(
        file,
        original
          .split('\n')
          .map((text, i) => (i === index ? changed : text))
          .join('\n'),
      );
      if (compiles() && compiledOf(file) !== before) {
        planted += 1;
        const isDetected = !passes();
        if (isDetected) detected += 1;
        const change = changed === '' ? `deleted: ${line.trim()}` : `${line.trim()}  =>  ${changed.trim()}`;
        process.stdout.write(
          `${isDetected ? 'detected' : 'MISSED  '} ${relative(copy, file)}:${index + 1}  ${change}\n`,
        );
      }
      writeFileSync(file, original);
      compiles();
    }
    process.stdout.write(`${detected} of ${planted} breaks detected\n`);
    if (detected < atLeast) process.exitCode = 1;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

main();
