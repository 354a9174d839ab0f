// Writes the reference pages that are derived from code. With --check it reports the pages that are out of date, and
// links and citations of documents that do not exist.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { codes, metrics } from './source-tables.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const built = (path) => import(`${root}${path}`);

const { defaultText, descriptionOf } = await built('packages/core/dist/src/options/option-table.js');
const { optionTable } = await built('packages/keelson/dist/src/config/options.js');
const { storeCases, resourceStorageCases, clientCases } = await built('packages/conformance/dist/src/index.js');
const { optionSections } = await built('packages/agent/dist/src/startup/options/option-table.js');
const { featureGates } = await built('packages/agent/dist/src/startup/options/feature-gates.js');
const { StorageError } = await built('packages/core/dist/src/index.js');
const { translateError } = await built('packages/core/dist/src/internal.js');
const { builtinKinds } = await built('packages/kinds/dist/src/index.js');

const cell = (text) => String(text).replaceAll('|', '\\|').replaceAll('\n', ' ');
const table = (head, rows) =>
  [
    `| ${head.join(' | ')} |`,
    `|${head.map(() => '---').join('|')}|`,
    ...rows.map((row) => `| ${row.map(cell).join(' | ')} |`),
  ].join('\n');

function commandLine() {
  const rows = optionTable.map((row) => [
    row.flag === undefined ? '' : `\`${row.flag}${row.type.bare === undefined ? ` ${row.type.name}` : ''}\``,
    row.variable === undefined ? '' : `\`${row.variable}\``,
    row.field === undefined ? '' : `\`${row.field}\``,
    defaultText(row),
    descriptionOf(row),
  ]);
  return `# Command line

\`keelson serve\` and \`keelson up\` accept the same options, except for \`--agent\`, \`--nodes\` and \`--fake-nodes\`, which are only for \`up\`. Sources in the order
of their precedence: command line, environment, config file, default; every given value is checked. An unknown option,
variable or key is an error that suggests the nearest name. Relative paths in a config file refer to its directory. Exit
codes: 0 ended on request, 1 failed, 2 invalid usage.

\`keelson verify\` accepts the same options and checks everything in each store of \`--storage\`, while no server uses it:
every record passes its checksum and is an object under its own name, revisions are valid, history has no gap, and for
LMDB every page of the data file is consistent. It changes nothing, prints one line per store with the number of objects
per kind and one line per damaged record, and exits with code 1 when it finds damage or a store cannot be read. On etcd
and PostgreSQL it can run beside servers.

\`keelson user add NAME [--group GROUP] [--role ROLE] [--namespace NAMESPACE] [--output FILE]\` writes a kubeconfig with a new
client certificate for a user and creates the binding of the role. \`keelson can-i [--as USER] [--as-group GROUP] VERB
RESOURCE[/NAME] [-n NAMESPACE] [--subresource NAME] [--why]\` prints yes or no, with exit code 0 or 1, and with \`--why\` the rule
that allows the request or the smallest rule that would. Both are clients of a running server: they use
\`DATA/kubeconfig\`, or the file of \`--kubeconfig\`. See [manage permissions](../how-to/manage-permissions.md).

\`keelson down [--data DIR]\` stops the server that \`keelson up\` has started with this data directory, its agents and the processes
of their pods, and keeps all objects. \`keelson controllers [--data DIR | --kubeconfig FILE] [--controllers NAMES] [--log-level LEVEL]\` runs
controllers and the scheduler as clients of a running server, by default those that \`keelson serve\` does not run; of several such
processes one is elected. It writes \`keelson: running controllers for URL\` to stdout. See [run a small cluster](../how-to/run-a-cluster.md).

\`keelson envtest [DIR]\` writes the executables that envtest of controller-runtime starts, and prints the directory. See
[run envtest suites](../how-to/run-envtest-suites.md).

\`keelson bench [options]\` measures storages and running servers side by side. See [measure servers and adapters](../how-to/run-benchmarks.md).

When the server is ready it writes exactly one line to stdout, \`keelson: serving on URL\`, and a client config to
\`DATA/kubeconfig\`. SIGTERM ends it, also during its start: watches end, and running writes finish. A start that waits
for more than three seconds logs the reason. The server exits with code 1 when its store has failed permanently (for
example because another process wrote to an LMDB directory).

${table(['option', 'variable', 'key in the file', 'default', 'meaning'], rows)}
`;
}

function conformance() {
  const section = (title, text, cases) =>
    `## ${title}\n\n${text} ${cases.length} cases.\n\n${table(
      ['case', 'what it proves'],
      cases.map((entry) => [`\`${entry.id}\``, entry.title]),
    )}\n`;
  return `# Conformance cases

The suites are data: \`@keelson/conformance\` exports them with a function that registers them with a test runner. A case that needs a
capability or hook that an adapter does not have is reported as skipped, with the reason.

${section('Stores', 'What every `Store` must hold, on every adapter.', storeCases)}
${section('Resource storage', 'What every `ResourceStorage` must hold, directly over a store and through the watch cache.', resourceStorageCases)}
${section('API clients', 'What every `ApiClient` must hold, in process and over HTTP.', clientCases)}`;
}

function kinds() {
  const rows = builtinKinds.map((kind) => [
    kind.apiVersion,
    kind.kind,
    kind.names.plural,
    kind.names.shortNames.join(', '),
    kind.scope === 'Namespaced' ? 'namespace' : 'cluster',
    kind.subresources.map(({ name }) => name).join(', '),
    kind.verbs.length === 8 ? 'all' : kind.verbs.join(', '),
    [...kind.selectableFields.keys()].join(', '),
  ]);
  return `# Built-in kinds

${table(['version', 'kind', 'resource', 'short', 'scope', 'subresources', 'verbs', 'field selectors'], rows)}
`;
}

function agentOptions() {
  const chapter = ({ title, options }) =>
    `## ${title}\n\n${table(
      ['option', 'type', 'default', 'meaning'],
      options.map((row) => [`\`--${row.name}\``, row.type.name, defaultText(row), descriptionOf(row)]),
    )}\n`;
  return `# Options of the node agent

\`keelson-agent\` takes these options, as \`--name=value\` or \`--name value\`; a switch (bool) stands alone or takes its value as
\`--name=value\`, and \`_\` may stand for \`-\` in names. Of a repeated option the last value counts; lists, pairs and headers are joined, and the
first occurrence replaces the default. Durations are written like \`300ms\`, \`10s\`, \`2h45m\`.

An unknown option, a value out of range, and options that contradict each other end the command with
exit code 2 and one sentence that names the option. Other exit codes: 0 ended on request, 1 failed.

Without an option that names a runtime, the agent uses an engine that answers at the default socket of
--runtime-a-endpoint, otherwise runc if the agent runs as root and runc works, otherwise processes of the host. The
choice is permanent. The variable \`KEELSON_AGENT_RUNTIME\` (\`process\`, \`oci\`, \`engine\`, \`cri\`, a package or a
path) selects a runtime instead, and \`KEELSON_AGENT_RUNTIME_OPTIONS\` contains its options as a JSON object. See
[container runtimes](../explanation/container-runtimes.md).

Where \`/var/log\` cannot be written, logs of containers are in \`log\` below --root-dir; the variable
\`KEELSON_AGENT_LOG_ROOT\` names another directory. An agent that runs as root sets six kernel settings below
\`/proc/sys\` while it runs, unless --protect-kernel-defaults is given; \`KEELSON_AGENT_SYSCTL_ROOT\` names another
directory instead. With a directory that does not exist the agent changes no setting. It also creates cgroups for pods
where it can; \`KEELSON_AGENT_CGROUP_ROOT\` names another mount point than \`/sys/fs/cgroup\`.

With runtime-a and no --container-runtime-endpoint, the runtime is served as CRI at the default of that option, for
tools such as crictl; \`KEELSON_AGENT_CRI_SOCKET\` names another path, and an empty value disables this.

An agent with --bootstrap-clusterconfig serves the Services whose addresses are loopback addresses; the variable
\`KEELSON_AGENT_SERVICE_PROXY\` is \`on\` or \`off\` to change that. See
[expose services](../how-to/expose-services.md#services-on-other-nodes).

${optionSections.map(chapter).join('\n')}
## Feature gates

Set by --feature-gates. A named gate overrides \`AllAlpha\`, which turns on all other alpha gates.

${table(
  ['gate', 'stage', 'default'],
  featureGates.map(({ name, stage, default: value }) => [`\`${name}\``, stage.toLowerCase() || 'none', value]),
)}
`;
}

function metricsPage() {
  const section = (title, intro, prefix) => {
    const rows = metrics()
      .filter(({ packages }) => packages.some((name) => prefix.test(name)))
      .map(({ name, type, labels, help }) => [
        `\`${name}\``,
        type,
        labels.map((label) => `\`${label}\``).join(', '),
        help,
      ]);
    return `## ${title}\n\n${intro}\n\n${table(['metric', 'type', 'labels', 'meaning'], rows)}\n`;
  };
  const agentPackages = /^(?:packages\/(?:agent|container-\w+)|adapters\/runtime-\w+)$/;
  return `# Metrics

Servers and agents expose metrics in the text format of Prometheus at \`/metrics\`. Seconds and bytes are the units. Metrics of stores
have a further label \`storage\` when a server has several. [Monitor a server](../how-to/monitor.md) has alerts and a dashboard.

${section('Servers', 'Of `keelson serve`, `keelson up` and planes in programs that pass `metrics`.', new RegExp(`^(?!${agentPackages.source.slice(1)})`))}
${section('Node agents', 'Of `keelson-agent`. Those of containers have the names of cAdvisor and are at `/metrics/cadvisor`.', agentPackages)}`;
}

function errors() {
  const operation = { verb: 'get', resource: { group: '', resource: 'configmaps' }, name: 'x' };
  const storage = codes('packages/core/src/errors/storage-error.ts', 'StorageErrorCode').map(([code, meaning]) => {
    const { status } = translateError(new StorageError(code, ''), operation);
    return [`\`${code}\``, `${status.code} \`${status.reason}\``, meaning];
  });
  const plain = (file, constant) =>
    table(
      ['code', 'meaning'],
      codes(file, constant).map(([code, text]) => [`\`${code}\``, text]),
    );
  return `# Errors

## Responses of the server

The \`reason\` of a \`Status\`, and its \`code\`, which is that of HTTP. In programs they are those of a \`StatusError\`;
\`isStatusError(error, StatusReason.NotFound)\` compares the reason.

${table(
  ['reason', 'meaning'],
  codes('packages/core/src/meta/status.ts', 'StatusReason').map(([code, text]) => [`\`${code}\``, text]),
)}

## Requests without a response

The \`code\` of a \`ConnectionError\` of \`@keelson/client\`.

${plain('packages/client/src/http/connection-error.ts', 'ConnectionErrorCode')}

## Stores

The \`code\` of a \`StorageError\`, which adapters throw, and the response that clients of the API receive.

${table(['code', 'response', 'meaning'], storage)}

## Container runtimes

The \`code\` of a \`RuntimeError\`, which runtime adapters throw.

${plain('packages/container-runtime/src/runtime-error.ts', 'RuntimeErrorCode')}

## Exit codes

${table(
  ['code', 'meaning'],
  [
    ['0', 'ended on request'],
    ['1', 'failed; the last line of stderr has the reason'],
    ['2', 'invalid usage: one sentence names the option, variable or key, and the fix'],
  ],
)}
`;
}

const pages = {
  'docs/reference/agent-options.md': agentOptions(),
  'docs/reference/command-line.md': commandLine(),
  'docs/reference/conformance.md': conformance(),
  'docs/reference/errors.md': errors(),
  'docs/reference/kinds.md': kinds(),
  'docs/reference/metrics.md': metricsPage(),
};

/** Sources and pages of the repository, as paths below the root. */
function* textFiles(folder = '') {
  for (const entry of readdirSync(root + folder, { withFileTypes: true })) {
    const path = folder + entry.name;
    if (entry.isDirectory() && !['node_modules', 'dist', 'coverage', '.git'].includes(entry.name))
      yield* textFiles(`${path}/`);
    else if (entry.isFile() && /\.(?:md|ts|mjs)$/.test(entry.name)) yield path;
  }
}

/** A Markdown page without blocks of code, in which `#` and brackets have no meaning. */
const withoutBlocks = (text) => text.replace(/^([ \t]*)(```|~~~)[\s\S]*?^\1\2/gm, '');

const anchors = new Map();

/** Anchors of the headings of a page, in GitHub's form. */
function anchorsOf(path) {
  let known = anchors.get(path);
  if (known === undefined) {
    known = new Set();
    const text = withoutBlocks(readFileSync(root + path, 'utf8'));
    for (const [, heading] of text.matchAll(/^#{1,6}\s+(.*?)\s*$/gm)) {
      const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
      const anchor = plain.replace(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(/\s/g, '-');
      let unique = anchor;
      for (let copy = 1; known.has(unique); copy += 1) unique = `${anchor}-${copy}`;
      known.add(unique);
    }
    anchors.set(path, known);
  }
  return known;
}

/** Documents that are not in this repository and that comments once cited by chapter. */
const outside =
  /(?<!\/|-)\b(?:api-conventions|(?:agent|clients|goals|findings|libraries|reliability)\.md|(?:design|performance|storage)\.md [A-D\d]|reliability \d)/;
const decisions = new Set(readdirSync(`${root}docs/adr`).map((name) => Number(name.slice(0, 4))));
const decision = /\bADR (\d+)\b|\bdocs\/adr\/(\d{4})(?![\d-])/g;
const cited = /\bdocs\/[\w./-]+\.md\b(?:#[\w-]+)?/g;
const linked = /\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)|^\[[^\]]+\]:\s+(\S+)/gm;

/** Whether a document exists relative to one of the folders, and has the heading that the target names. */
function isThere(target, folders) {
  const [path, anchor] = decodeURI(target).split('#');
  const found = folders.map((folder) => join(folder, path)).find((each) => existsSync(root + each));
  return found !== undefined && (!anchor || !found.endsWith('.md') || anchorsOf(found).has(anchor));
}

/** Links of a page, and citations in any file, whose target does not exist. Citations are paths from the root. */
function* danglingIn(path) {
  const text = readFileSync(root + path, 'utf8');
  const folder = dirname(path);
  if (path.endsWith('.md')) {
    for (const [, inline, defined] of withoutBlocks(text)
      .replace(/`[^`\n]*`/g, '``')
      .matchAll(linked)) {
      const target = inline ?? defined;
      if (/^[a-z][a-z+.-]*:/i.test(target)) continue;
      if (!isThere(target.startsWith('#') ? `${basename(path)}${target}` : target, [folder])) yield target;
    }
  }
  for (const [target] of text.matchAll(cited)) if (!isThere(target, ['', folder])) yield target;
  for (const [target, number, file] of text.matchAll(decision))
    if (!decisions.has(Number(number ?? file))) yield target;
  const [old] = path === 'scripts/docs.mjs' ? [] : (outside.exec(text) ?? []);
  if (old !== undefined) yield old;
}

const check = process.argv.includes('--check');
const stale = Object.entries(pages).filter(
  ([path, text]) => !existsSync(root + path) || readFileSync(root + path, 'utf8') !== text,
);
for (const [path, text] of stale) {
  if (!check) writeFileSync(root + path, text);
  process.stdout.write(`${check ? 'out of date' : 'written'}: ${path}\n`);
}
if (check && stale.length > 0) process.stdout.write('run: npm run docs\n');
const dangling = check
  ? [...textFiles()].flatMap((path) => [...new Set(danglingIn(path))].map((to) => `${path}: ${to}`))
  : [];
for (const line of dangling) process.stdout.write(`names a document or heading that does not exist: ${line}\n`);
process.exitCode = check && stale.length + dangling.length > 0 ? 1 : 0;
