// Counts the packages that `npm install keelson` brings on Linux (x64, glibc), from the lock file: dependencies, their
// dependencies and required peers; optional peers such as the drivers of databases are not installed.
//
//   node scripts/closure.mjs [--list] [--check]
//
// `--list` prints them by the package that asks for them, `--check` fails above the limit.
import { readFileSync } from 'node:fs';

/** Maximum number of packages by other authors in the installation. This limit is only ever lowered. */
const limit = 78;
/** Packages are counted for one platform, because a package with binaries exists once for each platform. */
const platform = { os: 'linux', cpu: 'x64', libc: 'glibc' };

const { packages } = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8'));

/** The place in the lock file from which a package at `from` loads `name`; undefined when it is not installed. */
function placeOf(from, name) {
  for (let folder = from; ; ) {
    const path = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`;
    if (packages[path] !== undefined) return packages[path].link ? packages[path].resolved : path;
    if (folder === '') return undefined;
    const outer = folder.lastIndexOf('/node_modules/');
    folder = outer === -1 ? '' : folder.slice(0, outer);
  }
}

const isForPlatform = (entry) =>
  Object.entries(platform).every(([field, value]) => entry[field] === undefined || entry[field].includes(value));

const found = new Map();
function visit(path, asker) {
  const entry = packages[path];
  if (found.has(path) || !isForPlatform(entry)) return;
  found.set(path, asker);
  const optional = entry.peerDependenciesMeta ?? {};
  const peers = Object.keys(entry.peerDependencies ?? {}).filter((name) => !optional[name]?.optional);
  for (const name of [...Object.keys({ ...entry.dependencies, ...entry.optionalDependencies }), ...peers]) {
    const place = placeOf(path, name);
    if (place !== undefined) visit(place, path);
  }
}
visit('packages/keelson', '');

const others = [...found].filter(([path]) => path.includes('node_modules/'));
const nameOf = (path) => path.replace(/^.*node_modules\//, '');
if (process.argv.includes('--list')) {
  const askers = new Map();
  for (const [path, asker] of others) askers.set(nameOf(asker), [...(askers.get(nameOf(asker)) ?? []), nameOf(path)]);
  for (const [asker, entries] of [...askers].sort()) process.stdout.write(`${asker}: ${entries.join(', ')}\n`);
}
const types = others.filter(([path]) => nameOf(path).startsWith('@types/')).length;
process.stdout.write(
  `npm install keelson: ${others.length} packages of others (limit ${limit}; ${types} contain types only), ` +
    `${found.size - others.length} of Keelson\n`,
);
if (process.argv.includes('--check') && others.length > limit) process.exitCode = 1;
