import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArguments } from '@keelson/core/internal';
import { noMetrics, silentLogger, systemClock } from '@keelson/core/runtime';
import { builtinKinds, ConfigMap } from '@keelson/kinds';
import test from 'ava';
import { loadOptions } from '../../src/config/load-options.ts';
import { optionTable } from '../../src/config/options.ts';
import { createControlPlane } from '../../src/control-plane/create-control-plane.ts';
import { createPromMetrics } from '../../src/observe/prom-metrics.ts';
import { routeKinds } from '../../src/storage/kind-routes.ts';
import { makeStore } from '../../src/storage/open-storage.ts';
import { planStorage } from '../../src/storage/storage-plan.ts';

const root = fileURLToPath(new URL('../../../../../', import.meta.url));
const pages = join(root, 'docs/how-to');
const surroundings = { clock: systemClock, logger: silentLogger, metrics: noMetrics };

async function blocks(language: string): Promise<(readonly [page: string, text: string])[]> {
  const found: (readonly [string, string])[] = [];
  for (const page of (await readdir(pages)).filter((name) => name.endsWith('.md'))) {
    const text = await readFile(join(pages, page), 'utf8');
    for (const [, block = ''] of text.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 'gs')))
      found.push([page, block]);
  }
  return found;
}

test('every config file in the documentation is valid, including the options of each store', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-documented-'));
  t.teardown(() => rm(folder, { recursive: true }));
  // Manifests of objects, and indented parts of them, are no config files.
  const configs = (await blocks('yaml')).filter(
    ([, text]) => !/^apiVersion:/m.test(text) && !/^(?:#.*\n)* /.test(text),
  );
  t.true(configs.length >= 5);
  for (const [page, text] of configs) {
    const file = join(folder, 'keelson.yaml');
    await writeFile(file, text);
    const options = await loadOptions(['--config', file], {});
    const plan = planStorage(options.storage, { reads: options.reads, history: options.history }, page);
    routeKinds(plan, builtinKinds);
    for (const store of plan.stores) {
      // The module of the reader's own adapter is not here.
      if (JSON.stringify(store.choice).includes('own-adapter')) continue;
      await t.notThrowsAsync(makeStore(store, surroundings), `${page}: ${text}`);
    }
  }
});

test('every call of the command in the documentation has options that exist', async (t) => {
  const lines = (await blocks('sh'))
    .flatMap(([page, text]) =>
      text
        .replaceAll(/\\\n\s*/g, '')
        .split('\n')
        .map((line) => [page, line] as const),
    )
    .filter(([, line]) => /^keelson (serve|up)\b/.test(line));
  t.true(lines.length >= 8);
  for (const [page, line] of lines) {
    const words = line.replace(/ &$/, '').replaceAll('"', '').split(/\s+/).slice(2);
    t.notThrows(() => parseArguments(words, optionTable, 'keelson'), `${page}: ${line}`);
  }
});

/** Types of the metrics of the reference page, by name. */
async function documentedMetrics(): Promise<ReadonlyMap<string, string>> {
  const page = await readFile(join(root, 'docs/reference/metrics.md'), 'utf8');
  return new Map([...page.matchAll(/^\| `(\w+)` \| (\w+) \|/gm)].map(([, name = '', type = '']) => [name, type]));
}

test('the reference has every metric of a running server', async (t) => {
  const documented = await documentedMetrics();
  const metrics = createPromMetrics();
  const plane = await createControlPlane({ metrics });
  t.teardown(() => plane.close());
  const { url } = await plane.listen();
  await plane
    .client(ConfigMap)
    .namespace('default')
    .create({ metadata: { name: 'a' } });
  t.is((await fetch(`${url}/api/v1/configmaps`)).status, 200);
  const text = await metrics.text();
  const served = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)];
  t.true(served.length > 20, text);
  for (const [, name = '', type] of served) t.is(documented.get(name), type, name);
});

test('alerts and the dashboard use metrics that exist', async (t) => {
  const documented = await documentedMetrics();
  for (const file of ['alerts.yaml', 'dashboard.json']) {
    const text = await readFile(join(root, 'deploy/monitoring', file), 'utf8');
    const names = new Set(text.match(/\b(?:keelson|apiserver|nodejs|process)_\w+/g) ?? []);
    t.true(names.size >= 10, file);
    for (const name of names) {
      const base = name.replace(/_bucket$/, '');
      t.true(documented.has(base), `${file}: ${name}`);
      t.is(documented.get(base) === 'histogram', base !== name, `${file}: ${name}`);
    }
  }
});
