import { readFile } from 'node:fs/promises';
import test from 'ava';
import { clientCases, resourceStorageCases, storeCases } from '../src/index.ts';

const page = new URL('../../../../docs/reference/conformance-scenarios.md', import.meta.url);

test('every case that the table of scenarios names exists', async (t) => {
  const ids = new Set([...storeCases, ...resourceStorageCases, ...clientCases].map(({ id }) => id));
  const named = [...(await readFile(page, 'utf8')).matchAll(/`([a-z]+\.[a-z0-9-]+)`/g)].map(([, id]) => id ?? '');
  t.true(named.length > 100);
  t.deepEqual(
    named.filter((id) => !ids.has(id)),
    [],
  );
});
