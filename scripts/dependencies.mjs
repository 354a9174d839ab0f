// Checks which file may import which. A violation names file, line and the rule that is broken. The rules:
// 1. Sources of a package import only the packages that the table below lists for it, and only their public entry
//    points.
// 2. Certain libraries are imported by certain files alone.
// 3. Inside a package with layers, a lower layer never imports a higher one.
// 4. The folders inside the sources of a package form no cycle; type-only imports count.
// 5. Examples and documents use no entry point `./internal`.
// 6. `import(variable)` appears only in the loaders of adapters and plugins.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Packages of this repository that the sources of a package may import; `*` = all. */
const packages = {
  'packages/core': [],
  'packages/kinds': ['@keelson/core', '@keelson/certificates'],
  'packages/certificates': [],
  'packages/client': ['@keelson/core'],
  'packages/bench': ['@keelson/core', '@keelson/client'],
  'packages/access': [
    '@keelson/certificates',
    '@keelson/core',
    '@keelson/client',
    '@keelson/controller-kit',
    '@keelson/kinds',
  ],
  'packages/controller-kit': ['@keelson/core', '@keelson/client'],
  'packages/extensions': ['@keelson/core', '@keelson/client', '@keelson/controller-kit', '@keelson/kinds'],
  'packages/scheduler': ['@keelson/core', '@keelson/client', '@keelson/kinds', '@keelson/controller-kit'],
  'packages/service-proxy': ['@keelson/core', '@keelson/client', '@keelson/kinds'],
  'packages/controllers': [
    '@keelson/certificates',
    '@keelson/core',
    '@keelson/client',
    '@keelson/kinds',
    '@keelson/controller-kit',
  ],
  'packages/agent': [
    '@keelson/certificates',
    '@keelson/core',
    '@keelson/client',
    '@keelson/kinds',
    '@keelson/container-runtime',
    '@keelson/container-host',
    '@keelson/container-network',
    '@keelson/container-streams',
  ],
  'packages/container-runtime': ['@keelson/core'],
  'packages/container-host': ['@keelson/container-runtime'],
  'packages/container-images': ['@keelson/core', '@keelson/container-runtime', '@keelson/container-host'],
  'packages/container-monitor': ['@keelson/core', '@keelson/container-runtime', '@keelson/container-host'],
  'packages/container-network': ['@keelson/core', '@keelson/container-runtime', '@keelson/container-host'],
  'packages/container-streams': ['@keelson/core', '@keelson/container-runtime'],
  'packages/pino-logger': ['@keelson/core'],
  'packages/protobuf-wire': [],
  'packages/test-support': [],
  // Except for @keelson/core, these packages are imported by the project that create-keelson generates.
  'packages/create-keelson': [
    '@keelson/core',
    '@keelson/controller-kit',
    '@keelson/kinds',
    '@keelson/testing',
    'keelson',
  ],
  'packages/conformance': ['@keelson/core', '@keelson/container-runtime'],
  'adapters/storage-memory': ['@keelson/core'],
  'adapters/storage-lmdb': ['@keelson/core'],
  'adapters/storage-postgres': ['@keelson/core'],
  'adapters/storage-etcd3': ['@keelson/core', '@keelson/protobuf-wire'],
  'adapters/http-koa': ['@keelson/core'],
  'adapters/runtime-fake': ['@keelson/core', '@keelson/container-runtime'],
  'adapters/runtime-process': [
    '@keelson/core',
    '@keelson/container-runtime',
    '@keelson/container-host',
    '@keelson/container-images',
    '@keelson/container-monitor',
  ],
  'adapters/runtime-oci': [
    '@keelson/core',
    '@keelson/container-runtime',
    '@keelson/container-host',
    '@keelson/container-images',
    '@keelson/container-monitor',
    '@keelson/container-network',
  ],
  'adapters/runtime-engine': [
    '@keelson/core',
    '@keelson/container-runtime',
    '@keelson/container-host',
    '@keelson/container-network',
  ],
  'adapters/runtime-cri': [
    '@keelson/core',
    '@keelson/container-runtime',
    '@keelson/container-host',
    '@keelson/container-streams',
    '@keelson/protobuf-wire',
  ],
  'examples/own-adapter': ['@keelson/core'],
  'examples/own-controller': '*',
  'examples/own-runtime': ['@keelson/core', '@keelson/container-runtime'],
  'examples/own-kind': '*',
  'examples/guestbook': '*',
  'examples/saas-plane': '*',
  'examples/fleet': '*',
  'examples/bench-adapters': '*',
  'packages/keelson': '*',
  'packages/keelson-agent': '*',
  'packages/testing': '*',
  benchmarks: '*',
  test: '*',
};

/**
 * Layers of packages by the first folder below `src`, the lowest layer first. A file imports from its own folder and
 * from the layers before; folders of the same layer do not import each other.
 */
const layers = {
  'packages/core': [
    ['meta'],
    ['json', 'errors'],
    ['kind'],
    ['runtime'],
    ['scope', 'patch', 'apply', 'client'],
    ['storage'],
    ['discovery', 'codec'],
    ['openapi', 'options'],
    ['watch-cache', 'registry'],
  ],
  'packages/agent': [['base'], ['runtime-view'], ['machine'], ['pods'], ['node'], ['sources'], ['serve'], ['startup']],
};

/**
 * Imports between folders that break rule 3 or 4 and are to be removed, by package: `importing folder -> imported
 * folder`. Nothing is added to this list.
 */
const exemptions = {};

/** Files that load a module whose name is a value: the loaders of adapters, of kinds and of test servers. */
const variableImports = [
  /^packages\/keelson\/src\/storage\/open-storage\.ts$/,
  /^packages\/keelson\/src\/config\/load-modules\.ts$/,
  /^packages\/keelson-agent\/src\/adapters\/load-adapter\.ts$/,
  /^benchmarks\/src\/stores\/database\.ts$/,
  /^test\/src\/faults\/databases\.ts$/,
  /^test\/test\/plane\/bundles\.test\.ts$/,
];

/** Libraries that only certain files may import. */
const libraries = {
  koa: [/^adapters\/http-koa\//, /^benchmarks\//, /^packages\/keelson\/test\//, /^test\/test\/plane\/frameworks/],
  '@koa/router': [/^test\/test\/packages\//, /^examples\/saas-plane\//, /^packages\/keelson\/test\//],
  lmdb: [/^adapters\/storage-lmdb\//, /^benchmarks\//],
  pg: [/^adapters\/storage-postgres\//, /^benchmarks\//],
  etcd3: [/^adapters\/storage-etcd3\//, /^benchmarks\//],
  '@grpc/grpc-js': [/^adapters\/runtime-cri\//, /^benchmarks\//],
  pino: [/^packages\/pino-logger\//],
  'prom-client': [/^packages\/keelson\//, /^packages\/agent\/src\/serve\/stats\/text-metrics\.ts$/],
};

function* sources(folder) {
  for (const name of readdirSync(folder)) {
    if (name === 'node_modules' || name === 'dist') continue;
    const path = join(folder, name);
    if (statSync(path).isDirectory()) yield* sources(path);
    else if (/\.(ts|tsx)$/.test(name)) yield path;
  }
}

const importPattern =
  /(?:^|\n)\s*(?:import|export)\s+(?:type\s+)?(?:[^;'"]*?\bfrom\s+)?['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)/g;
const variableImportPattern = /\bimport\(\s*(?!['"\s])/g;

function lineOf(text, index) {
  return text.slice(0, index).split('\n').length;
}

function importsOf(text) {
  return [...text.matchAll(importPattern)].map((match) => ({
    specifier: match[1] ?? match[2],
    line: lineOf(text, match.index + match[0].length),
  }));
}

/** Lines of dynamic imports of a value; mentions in comments do not count. */
function variableImportsOf(text) {
  const lines = text.split('\n');
  return [...text.matchAll(variableImportPattern)]
    .map((match) => lineOf(text, match.index))
    .filter((line) => !/^\s*(\/\/|\/?\*)/.test(lines[line - 1]));
}

const manifestOf = (workspace) => JSON.parse(readFileSync(join(root, workspace, 'package.json'), 'utf8'));

/** Every specifier by which a package of this repository may be imported, by the name of the package. */
const entryPoints = new Map();
const workspaces = ['packages', 'adapters', 'examples']
  .flatMap((group) => readdirSync(join(root, group)).map((name) => `${group}/${name}`))
  .filter((workspace) => existsSync(join(root, workspace, 'package.json')));
for (const workspace of workspaces) {
  const { name, exports = {} } = manifestOf(workspace);
  entryPoints.set(name, new Set(Object.keys(exports).map((path) => join(name, path))));
}

const problems = [];
const notices = [];
let files = 0;

for (const workspace of workspaces)
  if (!packages[workspace]) problems.push(`${workspace}: not in the table of packages`);

for (const [workspace, allowed] of Object.entries(packages)) {
  if (!existsSync(join(root, workspace))) {
    problems.push(`${workspace}: in the table of packages, but there is no such package`);
    continue;
  }
  /** Files by the importing folder and the imported one, relative to `src`. */
  const folderImports = new Map();
  for (const path of sources(join(root, workspace))) {
    files += 1;
    const file = relative(root, path);
    const text = readFileSync(path, 'utf8');
    const isTest = file.startsWith(`${workspace}/test/`) && workspace !== 'test';
    const report = (line, rule) => problems.push(`${file}:${line}: ${rule}`);
    if (!variableImports.some((pattern) => pattern.test(file))) {
      for (const line of variableImportsOf(text))
        report(line, 'import() of a value: only loaders of adapters may do this');
    }
    for (const { specifier, line } of importsOf(text)) {
      const name = specifier.startsWith('@') ? specifier.split('/').slice(0, 2).join('/') : specifier.split('/')[0];
      if (specifier.startsWith('.')) {
        const target = relative(root, resolve(dirname(path), specifier));
        if (!target.startsWith(`${workspace}/`)) report(line, `reaches into another package by path: ${specifier}`);
        else noteFolders(folderImports, workspace, file, target, line);
      } else if (['keelson', 'keelson-agent'].includes(name) || name.startsWith('@keelson/')) {
        const entries = entryPoints.get(name);
        if (specifier !== name && !entries?.has(specifier))
          report(line, `${specifier} is not an entry point of ${name}`);
        if (allowed !== '*' && !isTest && !allowed.includes(name)) report(line, `${workspace} may not import ${name}`);
        if (specifier.endsWith('/internal') && workspace.startsWith('examples/'))
          report(line, `an example imports public entry points only, not ${specifier}`);
      } else if (libraries[name] && !libraries[name].some((pattern) => pattern.test(file))) {
        report(line, `${name} may not be imported here`);
      }
    }
  }
  if (workspaces.includes(workspace)) checkFolders(workspace, folderImports);
}

/** Entry points of a package re-export from every folder and are imported by none: they are not part of the graph. */
function isEntryPoint(workspace, file) {
  const { exports = {} } = manifestOf(workspace);
  const names = Object.keys(exports).map((path) => (path === '.' ? 'index' : path.slice(2)));
  return names.some((name) => file === `${workspace}/src/${name}.ts`);
}

function noteFolders(folderImports, workspace, file, target, line) {
  const source = `${workspace}/src`;
  if (!file.startsWith(`${source}/`) || !target.startsWith(`${source}/`)) return;
  if (isEntryPoint(workspace, file) || isEntryPoint(workspace, target)) return;
  const from = relative(source, dirname(file)) || '.';
  const to = relative(source, dirname(target)) || '.';
  if (from === to) return;
  const key = `${from} -> ${to}`;
  if (!folderImports.has(key)) folderImports.set(key, { from, to, places: [] });
  folderImports.get(key).places.push(`${file}:${line}`);
}

function checkFolders(workspace, folderImports) {
  const exempted = new Set(exemptions[workspace] ?? []);
  const edges = [...folderImports].filter(([pair]) => !exempted.has(pair)).map(([, edge]) => edge);
  const order = layers[workspace];
  if (order !== undefined) for (const edge of edges) checkLayer(workspace, order, edge);
  for (const pair of exempted) {
    const edge = folderImports.get(pair);
    const inCycle = edge !== undefined && cyclesOf([...edges, edge]).some((cycle) => cycle.includes(edge.from));
    if (!inCycle) notices.push(`${workspace}: the exemption "${pair}" is not needed any more`);
  }
  for (const cycle of cyclesOf(edges)) {
    problems.push(`${workspace}: the folders ${cycle.join(', ')} import each other:`);
    for (const { from, to, places } of edges) {
      if (cycle.includes(from) && cycle.includes(to)) problems.push(`  ${from} -> ${to}: ${some(places)}`);
    }
  }
}

function checkLayer(workspace, order, { from, to, places }) {
  const [importing, imported] = [from, to].map((folder) => folder.split('/')[0]);
  if (importing === imported) return;
  const [layer, lower] = [importing, imported].map((folder) => order.findIndex((row) => row.includes(folder)));
  if (layer === -1 || lower === -1)
    problems.push(`${workspace}: no layer is known for ${layer === -1 ? importing : imported}`);
  else if (lower >= layer) problems.push(`${some(places)}: layer ${importing} may not import layer ${imported}`);
}

/** Names at most three of the places at which a rule is violated, and the number of the others. */
function some(places) {
  const more = places.length > 3 ? ` and ${places.length - 3} more` : '';
  return places.slice(0, 3).join(', ') + more;
}

/** Groups of folders that reach each other (strongly connected components, after Tarjan). */
function cyclesOf(edges) {
  const next = new Map();
  for (const { from, to } of edges) next.set(from, [...(next.get(from) ?? []), to]);
  const index = new Map();
  const lowest = new Map();
  const stack = [];
  const cycles = [];
  function visit(folder) {
    index.set(folder, index.size);
    lowest.set(folder, index.get(folder));
    stack.push(folder);
    for (const other of next.get(folder) ?? []) {
      if (!index.has(other)) visit(other);
      if (stack.includes(other)) lowest.set(folder, Math.min(lowest.get(folder), lowest.get(other)));
    }
    if (lowest.get(folder) !== index.get(folder)) return;
    const group = stack.splice(stack.indexOf(folder));
    if (group.length > 1) cycles.push(group.sort());
  }
  for (const folder of next.keys()) if (!index.has(folder)) visit(folder);
  return cycles;
}

// Documents show what readers may do: public entry points only.
const documents = execFileSync('git', ['ls-files', '*.md'], { cwd: root, encoding: 'utf8' }).trim().split('\n');
for (const file of documents.filter((path) => existsSync(join(root, path)))) {
  for (const { specifier, line } of importsOf(readFileSync(join(root, file), 'utf8')))
    if (specifier.startsWith('@keelson/') && specifier.endsWith('/internal'))
      problems.push(`${file}:${line}: a document shows public entry points only, not ${specifier}`);
}

if (files < 50) problems.push(`only ${files} source files found: the check itself is broken`);
for (const line of [...problems, ...notices]) process.stdout.write(`${line}\n`);
process.stdout.write(`dependencies: ${files} files, ${problems.length} violations\n`);
process.exitCode = problems.length === 0 ? 0 : 1;
