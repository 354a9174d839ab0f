// Checks that every package can be published: the fields of its package.json, its exports (publint), and the types that
// users with each module resolution get (arethetypeswrong). Packages are checked as `npm pack` would contain them.
//
//   node scripts/check-packages.mjs [--write]
//
// `--write` sets the fields that are equal in all packages.
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkPackage, Package } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';

const root = fileURLToPath(new URL('..', import.meta.url));
const write = process.argv.includes('--write');
const repository = 'git+https://github.com/keelson-dev/keelson.git';

const folders = ['packages', 'adapters']
  .flatMap((group) => readdirSync(join(root, group)).map((name) => `${group}/${name}`))
  .filter((folder) => existsSync(join(root, folder, 'package.json')));

/** Fields with the same value in each package. */
const commonFields = (folder) => ({
  license: 'Apache-2.0',
  type: 'module',
  repository: { type: 'git', url: repository, directory: folder },
  engines: { node: '>=20.19' },
  publishConfig: { access: 'public' },
});

/** The files that the field `files` selects, with the names that they have in a package. */
function packedFiles(folder, { name, files }) {
  const packed = { [`/node_modules/${name}/package.json`]: readFileSync(join(root, folder, 'package.json'), 'utf8') };
  const add = (path) => {
    if (!existsSync(join(root, folder, path))) return;
    if (statSync(join(root, folder, path)).isDirectory())
      for (const child of readdirSync(join(root, folder, path))) add(`${path}/${child}`);
    else if (/\.(?:js|ts|json)$/.test(path))
      packed[`/node_modules/${name}/${path}`] = readFileSync(join(root, folder, path), 'utf8');
  };
  for (const path of files) add(path.replace('/**/*.d.ts', ''));
  return packed;
}

const problems = [];
for (const folder of folders) {
  const path = join(root, folder, 'package.json');
  const manifest = JSON.parse(readFileSync(path, 'utf8'));
  const { name, description, version, ...rest } = manifest;
  const expected = commonFields(folder);
  if (write) {
    writeFileSync(
      path,
      `${JSON.stringify({ name, version, description, ...expected, ...rest, ...expected }, null, 2)}\n`,
    );
    continue;
  }
  const report = (text) => problems.push(`${folder}: ${text}`);
  for (const [field, value] of Object.entries(expected))
    if (JSON.stringify(manifest[field]) !== JSON.stringify(value))
      report(`the field ${field} differs; run node scripts/check-packages.mjs --write`);
  if (!existsSync(join(root, folder, 'README.md'))) report('there is no README.md');
  const { messages } = await publint({ pkgDir: join(root, folder), pack: false, strict: true, level: 'warning' });
  for (const message of messages) report(formatMessage(message, manifest));
  if (manifest.exports?.['.'] === undefined) continue;
  const analysis = await checkPackage(new Package(packedFiles(folder, manifest), name, version));
  // Packages contain modules only; `require` of them is not supported.
  const found = (analysis.problems ?? []).filter(
    ({ kind, resolutionKind }) => !['node10', 'node16-cjs'].includes(resolutionKind) && kind !== 'CJSResolvesToESM',
  );
  for (const problem of found) report(JSON.stringify(problem));
}
process.stdout.write(problems.map((problem) => `${problem}\n`).join(''));
process.exitCode = problems.length === 0 ? 0 : 1;
