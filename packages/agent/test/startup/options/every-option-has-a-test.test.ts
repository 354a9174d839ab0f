import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { optionTable } from '../../../src/startup/options/option-table.ts';

const root = fileURLToPath(new URL('../../../../../../', import.meta.url));

/** Where an option's effect may be observed. */
const places = [
  'packages/agent/test',
  'packages/client/test/events',
  'packages/keelson-agent/test',
  'test/test/agent',
  'test/src',
  'adapters/runtime-process/test',
];

/** Tests of the table itself prove nothing about effects. */
const aboutTheTable = /test\/startup\/options\/(grammar|specification|every-option-has-a-test)\.test\.ts$/;

function sources(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !aboutTheTable.test(path) && !path.includes('/node_modules/'));
}

test('every option has a test that names it', (t) => {
  const text = places
    .flatMap((place) => sources(join(root, place)))
    .map((path) => readFileSync(path, 'utf8'))
    .join('\n');
  const named = new Set([...text.matchAll(/--([a-z][a-z0-9-]*)/g)].map(([, name]) => name));
  const missing = optionTable.filter(({ name }) => !named.has(name)).map(({ name }) => name);
  t.deepEqual(missing, []);
});
