import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';
import { parseArguments } from '@keelson/core/internal';
import { noMetrics, silentLogger, systemClock } from '@keelson/core/runtime';
import { builtinKinds, ConfigMap } from '@keelson/kinds';
import test from 'ava';
import { loadOptions } from '../../src/config/load-options.ts';
import { optionTable } from '../../src/config/options.ts';
import { createControlPlane } from '../../src/control-plane/create-control-plane.ts';
import { createPromMetrics } from '../../src/observe/prom-metrics.ts';
import { makeStore } from '../../src/storage/open-storage.ts';
import { routeKinds } from '../../src/storage/plane-stores.ts';
import { planStorage } from '../../src/storage/storage-plan.ts';
import { loadCredentials } from '../../src/tls/credentials.ts';

const root = fileURLToPath(new URL('../../../../../', import.meta.url));
/** The guides; the commands of the others run in `scripts/documented-steps.mjs`. */
const guides = join(root, 'docs/how-to');
const walkthroughs = ['README.md', 'docs/tutorial/first-control-plane.md', 'docs/tutorial/own-project.md'];
const context = { clock: systemClock, logger: silentLogger, metrics: noMetrics };

async function blocks(language: string): Promise<(readonly [page: string, text: string])[]> {
  const found: (readonly [string, string])[] = [];
  const pages = (await readdir(guides)).filter((name) => name.endsWith('.md')).map((name) => join('docs/how-to', name));
  for (const page of [...pages, ...walkthroughs]) {
    const text = await readFile(join(root, page), 'utf8');
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
      await t.notThrowsAsync(makeStore(store, context), `${page}: ${text}`);
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
    .flatMap(([page, line]) => {
      const call = /^(?:keelson|node \S+\/keelson\.js) (?:serve|up)\b(.*?)(?: {2,}#.*| &)?$/.exec(line);
      return call === null ? [] : [[page, call[1]?.trim() ?? ''] as const];
    });
  t.true(lines.length >= 14);
  for (const [page, line] of lines) {
    const words = line === '' ? [] : line.replaceAll('"', '').split(/\s+/);
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

test('the image and the composition use packages, options and files that exist', async (t) => {
  const folder = join(root, 'deploy/docker');
  const dockerfile = await readFile(join(folder, 'Dockerfile'), 'utf8');
  const adapters = /^ARG PACKAGES="(.*)"$/m.exec(dockerfile)?.[1]?.split(' ') ?? [];
  const manifests = await Promise.all(
    (await readdir(join(root, 'adapters'))).map((name) =>
      readFile(join(root, 'adapters', name, 'package.json'), 'utf8'),
    ),
  );
  const names = manifests.map((text) => (JSON.parse(text) as { readonly name: string }).name);
  t.true(adapters.length >= 2);
  for (const adapter of adapters) t.true(names.includes(adapter), adapter);
  t.notRegex(dockerfile, /^(?:COPY|ADD) /m);
  const [, ...healthcheck] = JSON.parse(/^HEALTHCHECK .* CMD (\[.*\])$/m.exec(dockerfile)?.[1] ?? '[]') as string[];
  t.notThrows(() => new Script(healthcheck[1] ?? 'absent(')); // Compiled, not run.

  const compose = await readFile(join(folder, 'compose.yaml'), 'utf8');
  const variables = new Map(
    [...`${dockerfile}\n${compose}`.matchAll(/\b(KEELSON_\w+)(?:=|: )([^\s},]+)/g)].map(([, name = '', value = '']) => [
      name,
      value,
    ]),
  );
  t.true(variables.size >= 3);
  await t.notThrowsAsync(loadOptions([], Object.fromEntries(variables)));
  for (const [, words = ''] of compose.matchAll(/command: \[serve, ([^\]]+)\]/g))
    t.notThrows(() => parseArguments(words.split(', '), optionTable, 'keelson'));

  const services = [...(compose.split(/^services:$/m)[1] ?? '').matchAll(/^ {2}([\w-]+):/gm)].map(([, name]) => name);
  for (const [, path = ''] of compose.matchAll(/"(\.\.\/[^:"]+):/g)) {
    const mounted = await readFile(join(folder, path), 'utf8');
    for (const [, host = ''] of mounted.matchAll(/^ +server \S+ ([\w-]+):\d+$/gm))
      t.true(services.includes(host), host);
  }

  const data = await mkdtemp(join(tmpdir(), 'keelson-compose-'));
  t.teardown(() => rm(data, { recursive: true }));
  await loadCredentials(data, '127.0.0.1', systemClock.now());
  const shared = /cp -n (.*) \$\$KEELSON_DATA/.exec(compose)?.[1]?.split(' ') ?? [];
  t.true(shared.length >= 5);
  const files = [...(await readdir(data)), 'service-account.key'];
  for (const path of shared) t.true(files.includes(basename(path)), path);
});
