// Runs the suites of stores, resource storage and clients on every adapter, and on every kind of server that an adapter
// supports. Prints a table of suites and one of cases: `npm run conformance [-- --write] [--on NAME[,NAME...]]`. With
// --write the tables are written to docs/reference/conformance-table.md; --on runs some columns and writes nothing.
import { execFileSync, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const { storeCases, resourceStorageCases, clientCases } = await import(`${root}packages/conformance/dist/src/index.js`);

const { values: given } = parseArgs({
  options: { write: { type: 'boolean', default: false }, on: { type: 'string' } },
});

/** Columns of the table: an adapter, and the variable by which its tests choose the server. */
const allColumns = [
  { name: 'memory', adapter: 'memory', env: {} },
  { name: 'lmdb', adapter: 'lmdb', env: {} },
  { name: 'etcd', adapter: 'etcd', env: { KEELSON_TEST_ETCD: 'installed' } },
  { name: 'etcd-newest', adapter: 'etcd', env: { KEELSON_TEST_ETCD: 'newest' } },
  { name: 'postgres', adapter: 'postgres', env: { KEELSON_TEST_POSTGRES: 'installed' } },
  { name: 'postgres-newest', adapter: 'postgres', env: { KEELSON_TEST_POSTGRES: 'newest' } },
  { name: 'postgres-pooled', adapter: 'postgres', env: { KEELSON_TEST_POSTGRES: 'pooled' } },
  { name: 'postgres-crowded', adapter: 'postgres', env: { KEELSON_TEST_POSTGRES: 'crowded' } },
];
const wanted = given.on?.split(',') ?? allColumns.map(({ name }) => name);
const stranger = wanted.find((name) => !allColumns.some((column) => column.name === name));
if (stranger !== undefined) {
  process.stderr.write(
    `--on: there is no column ${stranger}; there are ${allColumns.map(({ name }) => name).join(', ')}\n`,
  );
  process.exit(2);
}
const columns = allColumns.filter(({ name }) => wanted.includes(name));
const folders = { memory: 'storage-memory', lmdb: 'storage-lmdb', etcd: 'storage-etcd3', postgres: 'storage-postgres' };

/** Suites by the beginning of their test titles. */
const suites = [
  { title: 'Store', cases: storeCases, name: (adapter) => adapter },
  { title: 'Resource storage, directly', cases: resourceStorageCases, name: (adapter) => `direct on ${adapter}` },
  { title: 'Resource storage, watch cache', cases: resourceStorageCases, name: (adapter) => `cached on ${adapter}` },
  {
    title: 'Client over HTTP',
    cases: clientCases,
    name: (adapter) => (adapter === 'memory' ? 'HTTP, json' : `HTTP on ${adapter}`),
  },
];

/** Test files in which the suites of an adapter run. */
const filesOf = (adapter) => [
  `adapters/${folders[adapter]}/dist/test/conformance.test.js`,
  `adapters/${folders[adapter]}/dist/test/resource-storage.test.js`,
  `test/dist/test/client/contract${adapter === 'memory' ? '' : `-${adapter}`}.test.js`,
];

/** Runs test files; resolves to the outcome of each test by its title. */
async function run(files, env) {
  const cli = `${root}node_modules/ava/entrypoints/cli.mjs`;
  const options = { cwd: root, stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, ...env } };
  const ava = spawn(process.execPath, [cli, '--tap', '--serial', '--timeout', '10m', ...files], options);
  let text = '';
  ava.stdout.on('data', (chunk) => {
    text += String(chunk);
  });
  await new Promise((resolve) => ava.on('close', resolve));
  const outcomes = new Map();
  for (const [, not, title, skipped] of text.matchAll(/^(not )?ok \d+ - (.*?)( # SKIP.*)?$/gm)) {
    const short = title.slice(title.lastIndexOf(' › ') + 1).replace(/^› /, '');
    outcomes.set(short.trim(), not !== undefined ? 'failed' : skipped !== undefined ? 'skipped' : 'passed');
  }
  return outcomes;
}

/** Outcome of each case of a suite on an adapter; `absent` = no test of it ran. */
function outcomesOf(suite, adapter, outcomes) {
  const found = new Map(suite.cases.map(({ id }) => [id, { outcome: 'absent', why: '' }]));
  for (const [title, outcome] of outcomes) {
    for (const { id } of suite.cases) {
      if (!title.startsWith(`${suite.name(adapter)}: ${id}: `)) continue;
      const why = /\[not run, the harness has no (.*)\]/.exec(title)?.[1] ?? '';
      found.set(id, { outcome, why });
    }
  }
  return found;
}

const results = new Map();
for (const { name, adapter, env } of columns) {
  process.stderr.write(`${name} ...\n`);
  const outcomes = await run(filesOf(adapter), env);
  results.set(
    name,
    suites.map((suite) => outcomesOf(suite, adapter, outcomes)),
  );
}

const names = columns.map(({ name }) => name);

/** Versions of the servers behind the columns. */
async function versions() {
  const { findEtcd } = await import(`${root}adapters/storage-etcd3/dist/test/support/etcd-server.js`);
  const { findPostgres } = await import(`${root}adapters/storage-postgres/dist/test/support/postgres-server.js`);
  const version = (program) =>
    program === undefined ? 'absent' : /\d+(\.\d+)+/.exec(execFileSync(program, ['--version']).toString())?.[0];
  const postgres = (variant) => {
    const folder = findPostgres(variant);
    return version(folder === undefined ? undefined : `${folder}/postgres`);
  };
  return {
    etcd: version(findEtcd('installed')),
    newestEtcd: version(findEtcd('newest')),
    postgres: postgres('installed'),
    newestPostgres: postgres('newest'),
  };
}

const cell = (text) => String(text).replaceAll('|', '\\|');
const table = (head, rows) =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.map(cell).join(' | ')} |`).join('\n');

const count = (found, wanted) => [...found.values()].filter(({ outcome }) => outcome === wanted).length;
const numbers = (found) => {
  const failures = count(found, 'failed') + count(found, 'absent');
  return `${count(found, 'passed')} / ${failures} / ${count(found, 'skipped')}`;
};
const sum = (lists, outcome) => lists.reduce((all, found) => all + count(found, outcome), 0);
const totals = (pick) =>
  names.map((name) => {
    const lists = pick(results.get(name));
    return `${sum(lists, 'passed')} / ${sum(lists, 'failed') + sum(lists, 'absent')} / ${sum(lists, 'skipped')}`;
  });

const summary = table(
  ['suite', 'cases', ...names],
  [
    ...suites.map((suite, i) => [
      suite.title,
      suite.cases.length,
      ...names.map((name) => numbers(results.get(name)[i])),
    ]),
    ['**storage and watch together**', '', ...totals((lists) => lists.slice(0, 3))],
    ['**all together**', '', ...totals((lists) => lists)],
  ],
);

const sign = ({ outcome, why }) =>
  ({ passed: 'passed', failed: '**failed**', absent: '**missing**', skipped: `– (${why})` })[outcome];
const details = suites
  .map((suite, i) => {
    const rows = suite.cases.map(({ id }) => [`\`${id}\``, ...names.map((name) => sign(results.get(name)[i].get(id)))]);
    return `## ${suite.title}\n\n${table(['case', ...names], rows)}\n`;
  })
  .join('\n');

const of = await versions();
const page = `# Conformance of the adapters

Made by \`npm run conformance -- --write\`, which runs every case of [conformance.md](conformance.md) on every adapter, and on the kinds of
servers that differ; where there is no such server its cases count as failed.

- \`etcd\`: etcd ${of.etcd} as Debian has it. \`etcd-newest\`: etcd ${of.newestEtcd}, built from its modules.
- \`postgres\`: PostgreSQL ${of.postgres} as Debian has it. \`postgres-newest\`: PostgreSQL ${of.newestPostgres}. \`postgres-pooled\`: the former behind PgBouncer
  in transaction mode, with the default options. \`postgres-crowded\`: the former with \`max_connections = 8\`.

Numbers are passed / failed / skipped; a case is skipped where the adapter cannot do what it
is about, and the word in brackets says what: \`advance\` (its clock cannot be moved), \`reopen\` and \`killAndReopen\` (nothing is left after its
end), \`denseRevisions\` (others may write to the same etcd), \`cache\` (the case is about what a cache does). The suite of resource storage
runs twice, over the bare store and through the watch cache.

${summary}

${details}`;

process.stdout.write(`${summary}\n`);
if (given.write && given.on === undefined) writeFileSync(`${root}docs/reference/conformance-table.md`, page);
const wrong = names.reduce((all, name) => all + sum(results.get(name), 'failed') + sum(results.get(name), 'absent'), 0);
process.exitCode = wrong === 0 ? 0 : 1;
