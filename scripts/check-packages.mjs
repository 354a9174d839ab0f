// Checks that every package can be published: the fields of its package.json and its exports (publint). The types that
// users with each module resolution get are compiled by test/test/packages/install.test.ts.
//
//   node scripts/check-packages.mjs [--write]
//
// `--write` sets the fields that are equal in all packages.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
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
}
process.stdout.write(problems.map((problem) => `${problem}\n`).join(''));
process.exitCode = problems.length === 0 ? 0 : 1;
