// Who may import whom. The table is the house plan as data; a violation names file, line and the rule it breaks.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Workspace packages that the sources of a package may import. */
const doors = {
  'packages/core': [],
  'packages/kinds': ['@keelson/core'],
  'packages/client': ['@keelson/core'],
  'packages/controllers': ['@keelson/core', '@keelson/client', '@keelson/kinds'],
  'packages/agent': [
    '@keelson/core',
    '@keelson/client',
    '@keelson/kinds',
    '@keelson/container-runtime',
    '@keelson/container-network',
    '@keelson/container-streams',
  ],
  'packages/container-runtime': ['@keelson/core'],
  'packages/container-images': ['@keelson/core', '@keelson/container-runtime'],
  'packages/container-monitor': ['@keelson/core', '@keelson/container-runtime'],
  'packages/container-network': ['@keelson/core', '@keelson/container-runtime'],
  'packages/container-streams': ['@keelson/core', '@keelson/container-runtime'],
  'packages/protobuf-wire': [],
  'packages/test-support': [],
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
    '@keelson/container-images',
    '@keelson/container-monitor',
  ],
  'adapters/runtime-oci': [
    '@keelson/core',
    '@keelson/container-runtime',
    '@keelson/container-images',
    '@keelson/container-monitor',
    '@keelson/container-network',
  ],
  'adapters/runtime-engine': ['@keelson/core', '@keelson/container-runtime', '@keelson/container-network'],
  'adapters/runtime-cri': [
    '@keelson/core',
    '@keelson/container-runtime',
    '@keelson/container-streams',
    '@keelson/protobuf-wire',
  ],
  'examples/own-adapter': ['@keelson/core'],
  'packages/keelson': '*',
  'packages/testing': '*',
  benchmarks: '*',
  test: '*',
};

/**
 * Rooms of core from the ground up; a file may import from its own room and from those in earlier rows (and, in a row,
 * from none of its neighbours).
 */
const coreFloors = [
  ['meta'],
  ['errors'],
  ['kind'],
  ['runtime'],
  ['scope', 'codec', 'patch', 'client'],
  ['discovery', 'storage'],
  ['openapi'],
  ['watch-cache', 'registry'],
];

/** Rooms whose types everybody in core may name, since they have no behaviour to depend on. */
const typeOnlyRooms = ['runtime', 'storage'];

/** Libraries that only certain files may import. */
const libraries = {
  koa: [/^adapters\/http-koa\//, /^benchmarks\//],
  '@koa/router': [/^adapters\/http-koa\//],
  lmdb: [/^adapters\/storage-lmdb\//, /^benchmarks\//],
  pg: [/^adapters\/storage-postgres\//, /^benchmarks\//],
  etcd3: [/^adapters\/storage-etcd3\//, /^benchmarks\//],
  '@grpc/grpc-js': [/^adapters\/storage-etcd3\//, /^adapters\/runtime-cri\//, /^benchmarks\//],
  pino: [/^packages\/keelson\//],
  'prom-client': [/^packages\/keelson\//],
  '@peculiar/x509': [/^packages\/keelson\/src\/tls\//, /^packages\/agent\/src\/serve\/self-signed\.ts$/],
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
  /(?:^|\n)\s*(import|export)\s+(type\s+)?([^;'"]*?\bfrom\s+)?['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)/g;

function importsOf(text) {
  return [...text.matchAll(importPattern)].map((match) => ({
    specifier: match[4] ?? match[5],
    typeOnly: match[2] !== undefined || onlyTypes(match[3]),
    line: text.slice(0, match.index + match[0].length).split('\n').length,
  }));
}

/** True for `import { type A, type B } from`. */
function onlyTypes(clause) {
  const names = /\{([^}]*)\}/.exec(clause ?? '')?.[1];
  return names?.split(',').every((name) => name.trim() === '' || name.trim().startsWith('type '));
}

const problems = [];
let files = 0;

for (const [workspace, allowed] of Object.entries(doors)) {
  for (const path of sources(join(root, workspace))) {
    files += 1;
    const file = relative(root, path);
    const isTest = file.startsWith(`${workspace}/test/`) && workspace !== 'test';
    for (const { specifier, typeOnly, line } of importsOf(readFileSync(path, 'utf8'))) {
      const refuse = (why) => problems.push(`${file}:${line}: ${why}`);
      const name = specifier.startsWith('@') ? specifier.split('/').slice(0, 2).join('/') : specifier.split('/')[0];
      if (specifier.startsWith('.')) {
        const target = relative(root, resolve(dirname(path), specifier));
        if (!target.startsWith(`${workspace}/`)) refuse(`reaches into another package by path: ${specifier}`);
        if (workspace === 'packages/core' && !isTest) checkFloor(file, target, typeOnly, refuse);
      } else if (name === 'keelson' || name.startsWith('@keelson/')) {
        if (specifier !== name) refuse(`deep import of ${name}: only its entry point is public`);
        if (allowed !== '*' && !isTest && !allowed.includes(name)) refuse(`${workspace} may not import ${name}`);
      } else if (libraries[name] && !libraries[name].some((pattern) => pattern.test(file))) {
        refuse(`${name} may not be imported here`);
      }
    }
  }
}

function checkFloor(file, target, typeOnly, refuse) {
  const room = /^packages\/core\/src\/([^/]+)\//.exec(file)?.[1];
  const other = /^packages\/core\/src\/([^/]+)\//.exec(target)?.[1];
  if (room === undefined || other === undefined || room === other) return;
  if (typeOnly && typeOnlyRooms.includes(other)) return;
  const floor = coreFloors.findIndex((rooms) => rooms.includes(room));
  const otherFloor = coreFloors.findIndex((rooms) => rooms.includes(other));
  if (floor === -1 || otherFloor === -1) refuse(`unknown room of core: ${floor === -1 ? room : other}`);
  else if (otherFloor >= floor) refuse(`core/${room} may not import core/${other}`);
}

if (files < 50) problems.push(`only ${files} source files found: the check itself is broken`);
for (const problem of problems) process.stdout.write(`${problem}\n`);
process.stdout.write(`doors: ${files} files, ${problems.length} violations\n`);
process.exitCode = problems.length === 0 ? 0 : 1;
