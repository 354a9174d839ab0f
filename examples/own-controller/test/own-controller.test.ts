import { execFile, spawn } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ConfigMap } from '@keelson/kinds';
import { temporaryDirectory, until } from '@keelson/test-support';
import { eventually, startTestPlane } from '@keelson/testing';
import test from 'ava';
import { Website } from '../src/website.ts';
import { websiteController } from '../src/website-controller.ts';

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

test('a website has a page, a line in the sitemap and a status; its deletion removes both', async (t) => {
  await using plane = await startTestPlane({ kinds: [Website], controllers: ['api', websiteController] });
  const websites = plane.client(Website).namespace('default');
  const maps = plane.client(ConfigMap).namespace('default');
  await maps.create({ metadata: { name: 'sitemap' }, data: { other: 'Other' } });
  await websites.create({ metadata: { name: 'home' }, spec: { title: 'Hello' } });
  const ready = await eventually(async () => {
    const website = await websites.get('home');
    return website.status?.observedGeneration === 1 && website;
  });
  t.like(ready.status, { page: 'home-page', conditions: [{ type: 'Ready', status: 'True', reason: 'Published' }] });
  t.deepEqual((await maps.get('home-page')).data, { 'index.html': '<h1>Hello</h1>\n' });

  await maps.delete('home-page');
  await eventually(async () => (await maps.get('home-page')).data?.['index.html'] === '<h1>Hello</h1>\n');
  await websites.patch('home', 'merge', { spec: { title: 'Welcome' } });
  await eventually(async () => (await websites.get('home')).status?.observedGeneration === 2);
  t.deepEqual((await maps.get('sitemap')).data, { other: 'Other', home: 'Welcome' });
  const last = await eventually(() => {
    const record = plane.controllers.trace('website-controller').at(-1);
    return record?.writeCount === 0 && record;
  });
  t.deepEqual(last.writes, [], 'the last run found nothing to do');

  await websites.delete('home');
  await eventually(async () => (await websites.list()).items.length === 0);
  t.deepEqual((await maps.get('sitemap')).data, { other: 'Other' });
  await eventually(async () => !(await maps.list()).items.some(({ metadata }) => metadata?.name === 'home-page'));
});

test('the program prints the page after each change', async (t) => {
  const { stdout } = await promisify(execFile)(process.execPath, [path('../src/main.js')]);
  t.deepEqual(stdout.trim().split('\n'), [
    "Hello Ready { 'index.html': '<h1>Hello</h1>\\n' }",
    "Welcome Ready { 'index.html': '<h1>Welcome</h1>\\n' }",
  ]);
});

test('keelson serve --config runs the controller', async (t) => {
  const data = await temporaryDirectory(t);
  const binary = path('../../../../packages/keelson/dist/bundle/keelson.js');
  const options = ['--config', path('../../keelson.yaml'), '--listen=127.0.0.1:0', '--insecure', `--data=${data}`];
  const server = spawn(process.execPath, [binary, 'serve', ...options], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => server.once('exit', resolve));
  t.teardown(async () => {
    server.kill();
    await ended;
    await rm(data, { recursive: true, force: true });
  });
  let output = '';
  server.stdout.on('data', (chunk) => {
    output += String(chunk);
  });
  const url = await until(() => /serving on (\S+)/.exec(output)?.[1], 'the server is ready', 60_000);
  const websites = `${url}/apis/web.example.com/v1/namespaces/default/websites`;
  const website = {
    apiVersion: 'web.example.com/v1',
    kind: 'Website',
    metadata: { name: 'home' },
    spec: { title: 'Hi' },
  };
  const headers = { 'content-type': 'application/json' };
  t.is((await fetch(websites, { method: 'POST', headers, body: JSON.stringify(website) })).status, 201);
  const page = await until(async () => {
    const answer = await fetch(`${url}/api/v1/namespaces/default/configmaps/home-page`);
    return answer.ok && ((await answer.json()) as ConfigMap);
  });
  t.deepEqual(page.data, { 'index.html': '<h1>Hi</h1>\n' });
});

test('the guide shows these files unchanged', async (t) => {
  const guide = await readFile(path('../../../../docs/how-to/write-a-controller.md'), 'utf8');
  for (const name of ['src/website.ts', 'src/website-controller.ts', 'keelson.yaml']) {
    const source = await readFile(path(`../../${name}`), 'utf8');
    t.true(guide.includes(`\`\`\`${name.endsWith('yaml') ? 'yaml' : 'ts'}\n${source}\`\`\``), name);
  }
});
