import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { createControlPlane } from 'keelson';
import { runKeelson, startKeelson, temporaryDirectory } from '../../src/keelson-process.ts';

// keelson bench as users run it: a storage, an adapter of their own, and a running server, with a kind of their own.

const ownAdapter = fileURLToPath(new URL('../../../../examples/own-adapter/dist/src/own-adapter.js', import.meta.url));
const ownKind = fileURLToPath(new URL('../../src/extra-kind.js', import.meta.url));
const folder = await temporaryDirectory();
test.after.always(() => rm(folder, { recursive: true }));

interface Report {
  readonly subjects: readonly string[];
  readonly results: readonly {
    readonly scenario: string;
    readonly subject: string;
    readonly perSecond: { readonly median: number };
    readonly p99Ms: number;
    readonly failed?: string;
  }[];
}

test('a storage, an adapter of the user and a server with access control are measured with an own kind', async (t) => {
  t.timeout(180_000);
  const peer = await startKeelson(join(folder, 'peer'), ['--storage', 'memory:', '--kinds', ownKind]);
  t.teardown(() => peer.kill());
  const object = join(folder, 'object.yaml');
  await writeFile(object, 'apiVersion: test.keelson.example/v1\nkind: Extra\nspec: { size: 3 }\n');
  const adapter = JSON.stringify({ adapter: ownAdapter, path: join(folder, 'lines') });
  const out = join(folder, 'out');
  const { code, stdout, stderr } = await runKeelson([
    ...['bench', '--storage', 'memory:', '--storage', adapter, '--kubeconfig', peer.kubeconfig],
    ...['--kinds', ownKind, '--object', object, '--out', out],
    ...['--objects', '20', '--clients', '2', '--watchers', '2', '--rounds', '1', '--round', '100ms'],
  ]);
  t.is(code, 0, stderr);
  t.true(stdout.endsWith(`${join(out, 'report.html')}\n`));
  const report = JSON.parse(await readFile(join(out, 'report.json'), 'utf8')) as Report;
  t.is(report.subjects.length, 3);
  t.is(report.results.length, 3 * 7);
  for (const { failed, perSecond, p99Ms, ...row } of report.results) {
    t.is(failed, undefined, JSON.stringify(row));
    t.true(perSecond.median > 0 && p99Ms > 0, JSON.stringify(row));
  }
  t.regex(await readFile(join(out, 'report.html'), 'utf8'), /<svg/);
});

test('a server of the user is measured by its URL', async (t) => {
  const plane = await createControlPlane({ controllers: false });
  t.teardown(() => plane.close());
  const { url } = await plane.listen();
  const out = join(folder, 'by-url');
  const { code, stderr } = await runKeelson([
    ...['bench', '--url', url, '--scenarios', 'get,create', '--out', out],
    ...['--objects', '10', '--clients', '2', '--rounds', '1', '--round', '50ms'],
  ]);
  t.is(code, 0, stderr);
  const report = JSON.parse(await readFile(join(out, 'report.json'), 'utf8')) as Report;
  t.deepEqual(
    report.results.map(({ scenario, subject, failed }) => [scenario, subject, failed]),
    ['get', 'create'].map((scenario) => [scenario, report.subjects[0] ?? '', undefined]),
  );
  t.is(report.subjects.length, 1);
});

test('a storage that cannot be served is reported in one sentence with the reason of the server', async (t) => {
  const { code, stderr } = await runKeelson([
    'bench',
    '--storage',
    'mongo://x:secret@h/db',
    '--out',
    join(folder, 'no'),
  ]);
  t.is(code, 2);
  t.regex(stderr, /keelson: the storage mongo:\/\/x:\*\*\*@h\/db cannot be measured: .*mongo/);
  t.notRegex(stderr, /secret/);
});
