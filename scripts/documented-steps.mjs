// Runs every shell block of the README and of the tutorials as a reader does: line by line, in a fresh clone of this
// checkout or, for projects, in an empty folder with the packages of this checkout. Each line has to succeed, and to
// show what the page says it shows. Needs kubectl; the part about PostgreSQL needs a PostgreSQL.
//
//   node scripts/documented-steps.mjs [PAGE...]
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startPackedRegistry } from './packed-registry.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const { findPostgres, startPostgres } = await import(
  `${root}adapters/storage-postgres/dist/test/support/postgres-server.js`
);
const { freePort } = await import(`${root}packages/test-support/dist/src/index.js`);
const pages = ['README.md', 'docs/tutorial/first-control-plane.md', 'docs/tutorial/own-project.md'];
const chosen = process.argv.length > 2 ? process.argv.slice(2) : pages;
const home = mkdtempSync(join(tmpdir(), 'keelson-steps-'));
const clone = join(home, 'clone');

/** Time limit for a line to show the documented output. Controllers may have to work first, or servers to restart. */
const lineMs = 120_000;
/** Time limit for the start of a server: a first `npm start` installs dependencies and builds. */
const serverMs = 900_000;

/** Lines that run until they are stopped, and what they print when they are ready. */
const programs = [
  [/^npm test\b/, /^ {2}[✔-] /m],
  [/^(?:npm start|(?:cd \S+ && )?(?:\w+=\S+ )*npm run dev|(?:keelson|node \S+keelson\.js) serve)\b/, /serving on \S+/],
];
/** Blocks that are no steps: alternatives with databases of the reader, whose options a test parses. */
const alternatives = /^keelson serve --storage memory:\n/;
/** Where a reader inserts the lines of a block: behind the first line that matches. */
const places = { 'src/greeting.ts': / copies:/, 'test/greeting.test.ts': /const made = / };

/** A reader: folder, variables, and the program that runs in the first terminal. */
class Reader {
  constructor(cwd, env) {
    this.cwd = cwd;
    this.env = env;
    this.ingress = undefined;
    this.program = undefined;
    this.watches = [];
  }

  shell(script, stdio) {
    const options = { cwd: this.cwd, env: this.env, stdio, detached: true };
    return spawn('sh', ['-c', script], options);
  }

  async start(line, ready) {
    await this.stop();
    const child = this.shell(line, ['ignore', 'pipe', 'pipe']);
    const program = { child, ended: once(child, 'close'), output: '' };
    this.program = program;
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        program.output += String(chunk);
      });
    await this.until(
      () => ready.test(program.output),
      serverMs,
      () => program.output,
    );
    // The URL of Ingresses has another port than the documented one when that is in use.
    this.ingress = /Ingresses: +(\S+)/.exec(program.output)?.[1];
    return program.output;
  }

  async until(isTrue, limitMs, describe) {
    const deadline = performance.now() + limitMs;
    while (!(await isTrue())) {
      if (performance.now() > deadline || this.program?.child.exitCode > 0)
        throw new Error(`not as documented:\n${describe()}`);
      await pause(500);
    }
  }

  async stop() {
    for (const child of [...this.watches.splice(0), ...(this.program ? [this.program.child] : [])]) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, 'close');
      // The signal goes to the whole process group, as with Ctrl+C, because npm and the shell do not forward signals.
      process.kill(-child.pid, 'SIGTERM');
      await ended;
    }
    this.program = undefined;
  }

  /** Runs a line until it succeeds with the documented output, or fails with it. */
  async line(line, expected) {
    const variable = /^export (\w+)=(.*)$/.exec(line);
    if (variable) {
      this.env[variable[1]] = variable[2].replace('$PWD', this.cwd);
      return;
    }
    if (/^cd \S+$/.test(line)) {
      this.cwd = join(this.cwd, line.slice(3));
      return;
    }
    if (line.includes(' --watch')) {
      this.watches.push(this.shell(line, 'ignore'));
      return;
    }
    const command = line.replace('http://127.0.0.1:8080', this.ingress ?? 'http://127.0.0.1:8080');
    let result = '';
    await this.until(
      async () => {
        const child = this.shell(command, ['ignore', 'pipe', 'pipe']);
        let output = '';
        for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
        const [code] = await once(child, 'close');
        result = `${output}(exit code ${code})`;
        return expected.every((pattern) => pattern.test(output)) && (code === 0) === !isFailure(expected);
      },
      lineMs,
      () => result,
    );
  }
}

const isFailure = (expected) => expected.some(({ source }) => source.includes('is\\s+invalid'));

/** Patterns of the lines of a documented output: ages, names of machines and `...` differ. */
function patternsOf(text) {
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const pattern = line
        .trim()
        .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
        .replaceAll('\\.\\.\\.', '.*')
        .replace(/^vm\b/, '\\S+')
        .replace(/\b\d+s\b/g, '\\w+')
        .replace(/https?:\/\/127\\\.0\\\.0\\\.1:\d+/g, '\\S+')
        .replace(/\s+/g, '\\s+');
      return new RegExp(pattern);
    });
}

/** The command lines of a block. A here-document is part of the line that begins it. */
function linesOf(block) {
  return [...block.matchAll(/^.*<<EOF\n[\s\S]*?^EOF$|^.+$/gm)].map(([line]) => line.replace(/ {2,}# .*$/, ''));
}

/** Inserts a block into the file that the text before it names. */
function insert(reader, before, block) {
  const file = /^Add a .*`([^`]+\.ts)`/m.exec(before.slice(before.lastIndexOf('\n\n', before.length - 3)))?.[1];
  if (file === undefined) return false;
  const path = join(reader.cwd, file);
  const lines = readFileSync(path, 'utf8').split('\n');
  lines.splice(lines.findIndex((line) => places[file].test(line)) + 1, 0, block.trimEnd());
  writeFileSync(path, lines.join('\n'));
  return true;
}

/** The output that follows a block, when nothing but a sentence is between them. */
const outputAfter = (rest) => /^[^`#]{0,80}```text\n([\s\S]*?)```/.exec(rest)?.[1];

async function runPage(page, reader) {
  const text = readFileSync(join(root, page), 'utf8');
  let database;
  for (const found of text.matchAll(/^```(sh|ts|js)\n([\s\S]*?)^```$/gm)) {
    const [fenced, language, block] = found;
    if (language !== 'sh') {
      if (insert(reader, text.slice(0, found.index), block)) process.stdout.write(`${page}: edited\n`);
      continue;
    }
    if (alternatives.test(block)) continue;
    // Each block of the README begins in the checkout, because its blocks do not depend on each other.
    if (page === 'README.md') reader.cwd = clone;
    const shown = outputAfter(text.slice(found.index + fenced.length));
    const lines = linesOf(block);
    // `npm test` of a project is run to its end; that of the checkout is not run here.
    const ends = (line) => line === 'npm test' && reader.cwd !== clone;
    const servers = lines.map((line) => (ends(line) ? undefined : programs.find(([pattern]) => pattern.test(line))));
    for (const [at, written] of lines.entries()) {
      let line = written;
      if (line.includes('postgres://')) {
        if (findPostgres() === undefined) {
          process.stdout.write(`${page}: there is no PostgreSQL for: ${line}\n`);
          continue;
        }
        database = await startPostgres({ durable: false });
        await database.createDatabase('plane');
        line = line.replace(/postgres:\/\/\S+/, `'${database.url('plane')}?allowUnsafeServer=true'`);
      }
      const began = performance.now();
      if (line.startsWith('npm create')) {
        reader.cwd = join(home, page.replaceAll('/', '-'));
        mkdirSync(reader.cwd);
      }
      // The output that is documented below a block is that of its last line.
      const documented = shown === undefined || at < lines.length - 1 ? [] : patternsOf(shown);
      const [, ready] = servers[at] ?? [];
      if (ready === undefined) await reader.line(line, fitting(line, documented));
      else {
        const folder = /^cd (\S+) && /.exec(line)?.[1];
        const output = await reader.start(line, ready);
        if (folder !== undefined) reader.cwd = join(reader.cwd, folder);
        for (const pattern of documented)
          if (!pattern.test(output)) throw new Error(`the documented output is missing: ${pattern}\n${output}`);
        if (line.startsWith('npm test')) await reader.stop();
      }
      process.stdout.write(
        `${page}: ${line.split('\n')[0]}    (${((performance.now() - began) / 1000).toFixed(1)} s)\n`,
      );
    }
  }
  await reader.stop();
  await database?.stop();
}

/** The documented lines that `line` itself prints: for `kubectl get`, the last table and what follows it. */
function fitting(line, documented) {
  if (!line.includes('kubectl get')) return documented;
  const table = documented.findLastIndex(({ source }) => source.startsWith('NAME'));
  return table === -1 ? documented : documented.slice(table);
}

const registry = await startPackedRegistry(join(home, 'packed'));
try {
  spawnSync('git', ['clone', '--quiet', root, clone], { stdio: 'inherit' });
  for (const page of pages.filter((one) => chosen.includes(one))) {
    const inClone = page !== 'docs/tutorial/own-project.md';
    const cwd = inClone ? clone : home;
    const env = {
      ...process.env,
      ...registry.env,
      PATH: `${clone}/node_modules/.bin:${process.env.PATH}`,
      KEELSON_LISTEN: `127.0.0.1:${await freePort()}`,
    };
    const reader = new Reader(cwd, env);
    try {
      await runPage(page, reader);
    } finally {
      await reader.stop();
      if (inClone)
        spawnSync(process.execPath, [join(clone, 'packages/keelson/dist/bundle/keelson.js'), 'down'], {
          cwd: clone,
          env,
        });
      rmSync(join(clone, '.keelson'), { recursive: true, force: true });
    }
    process.stdout.write(`${page}: every step is as documented\n`);
  }
} catch (error) {
  process.stdout.write(`${error.message}\n`);
  process.exitCode = 1;
} finally {
  registry.close();
  rmSync(home, { recursive: true, force: true });
}
