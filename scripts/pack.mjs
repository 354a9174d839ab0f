// Packs every package that is published into a folder, with the licence beside its package.json. Those of the scope
// @keelson are in a folder of their own, because the files of `keelson-agent` and `@keelson/agent` have one name.
//
//   node scripts/pack.mjs FOLDER
//   node scripts/pack.mjs --licences    only copies the licence to every package, for `npm publish`
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const [folder] = process.argv.slice(2);
if (folder === undefined) {
  process.stderr.write('usage: node scripts/pack.mjs FOLDER | --licences\n');
  process.exit(2);
}
const packages = ['packages', 'adapters']
  .flatMap((group) => readdirSync(join(root, group)).map((name) => `${group}/${name}`))
  .filter((path) => existsSync(join(root, path, 'package.json')))
  .map((path) => ({ path, ...JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8')) }))
  .filter((manifest) => manifest.private !== true);

function pack(chosen, destination) {
  mkdirSync(destination, { recursive: true });
  const workspaces = chosen.flatMap(({ path }) => ['--workspace', path]);
  const args = ['pack', '--pack-destination', resolve(destination), '--loglevel=error', ...workspaces];
  const { status } = spawnSync('npm', args, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
  if (status !== 0) process.exitCode = 1;
}

const isScoped = ({ name }) => name.startsWith('@');
const copies = packages.map(({ path }) => join(root, path, 'LICENSE'));
for (const copy of copies) copyFileSync(join(root, 'LICENSE'), copy);
if (folder === '--licences') process.exit();
try {
  pack(
    packages.filter((manifest) => !isScoped(manifest)),
    folder,
  );
  pack(packages.filter(isScoped), join(folder, 'scoped'));
} finally {
  for (const copy of copies) rmSync(copy, { force: true });
}
