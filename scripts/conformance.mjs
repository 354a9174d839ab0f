// Runs the suites of stores, resource storage and clients on every adapter and prints a table of suites and one of cases, each by adapter:
// `npm run conformance [-- --write]`. With --write the tables become docs/reference/conformance-table.md.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const { storeCases, resourceStorageCases, clientCases } = await import(`${root}packages/conformance/dist/src/index.js`);

const adapters = ['memory', 'lmdb', 'etcd', 'postgres'];
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
async function run(files) {
  const cli = `${root}node_modules/ava/entrypoints/cli.mjs`;
  const options = { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] };
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
for (const adapter of adapters) {
  process.stderr.write(`${adapter} ...\n`);
  const outcomes = await run(filesOf(adapter));
  results.set(
    adapter,
    suites.map((suite) => outcomesOf(suite, adapter, outcomes)),
  );
}

const cell = (text) => String(text).replaceAll('|', '\\|');
const table = (head, rows) => [head, head.map(() => '---'), ...rows].map((row) => `| ${row.map(cell).join(' | ')} |`).join('\n');

const count = (found, wanted) => [...found.values()].filter(({ outcome }) => outcome === wanted).length;
const numbers = (found) => {
  const failures = count(found, 'failed') + count(found, 'absent');
  return `${count(found, 'passed')} / ${failures} / ${count(found, 'skipped')}`;
};
const sum = (lists, outcome) => lists.reduce((all, found) => all + count(found, outcome), 0);
const totals = (pick) =>
  adapters.map((adapter) => {
    const lists = pick(results.get(adapter));
    return `${sum(lists, 'passed')} / ${sum(lists, 'failed') + sum(lists, 'absent')} / ${sum(lists, 'skipped')}`;
  });

const summary = table(
  ['suite', 'cases', ...adapters],
  [
    ...suites.map((suite, i) => [
      suite.title,
      suite.cases.length,
      ...adapters.map((adapter) => numbers(results.get(adapter)[i])),
    ]),
    ['**storage and watch together**', '', ...totals((lists) => lists.slice(0, 3))],
    ['**all together**', '', ...totals((lists) => lists)],
  ],
);

const sign = ({ outcome, why }) =>
  ({ passed: 'passed', failed: '**failed**', absent: '**missing**', skipped: `– (${why})` })[outcome];
const details = suites
  .map((suite, i) => {
    const rows = suite.cases.map(({ id }) => [`\`${id}\``, ...adapters.map((adapter) => sign(results.get(adapter)[i].get(id)))]);
    return `## ${suite.title}\n\n${table(['case', ...adapters], rows)}\n`;
  })
  .join('\n');

const page = `# Conformance of the adapters

Made by \`npm run conformance -- --write\`, which runs every case of [conformance.md](conformance.md) on every adapter; where there is no etcd or
no PostgreSQL its cases count as failed. Numbers are passed / failed / skipped; a case is skipped where the adapter cannot do what it
is about, and the word in brackets says what: \`advance\` (its clock cannot be moved), \`reopen\` and \`killAndReopen\` (nothing is left after its
end), \`denseRevisions\` (others may write to the same etcd), \`cache\` (the case is about what a cache does). The suite of resource storage
runs twice, over the bare store and through the watch cache.

${summary}

${details}`;

process.stdout.write(`${summary}\n`);
if (process.argv.includes('--write')) writeFileSync(`${root}docs/reference/conformance-table.md`, page);
const wrong = adapters.reduce(
  (all, adapter) => all + sum(results.get(adapter), 'failed') + sum(results.get(adapter), 'absent'),
  0,
);
process.exitCode = wrong === 0 ? 0 : 1;
