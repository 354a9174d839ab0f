import { execFileSync } from 'node:child_process';
import { mkdir, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FakeClock, systemClock } from '@keelson/core/runtime';
import type { Pod } from '@keelson/kinds';
import { listeningLogger, manifest, temporaryDirectory, until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import type { EventSubject } from '../../src/base/events/event-recorder.ts';
import { FileSource } from '../../src/sources/file-source.ts';
import { namesOf } from '../support/bench.ts';

function open(t: ExecutionContext, path: string, { events = true, periodMs = 20_000 } = {}) {
  const sets: (readonly Pod[])[] = [];
  const logger = listeningLogger();
  const recorded: { subject: EventSubject; reason: string }[] = [];
  // Time that stands still keeps file events from being acted on: only the period, moved by the test, remains.
  const fake = new FakeClock();
  const source = new FileSource({
    path,
    periodMs,
    nodeName: 'n1',
    sink: (pods) => sets.push(pods),
    clock: events ? systemClock : fake,
    logger,
    events: { record: (subject, _, reason) => recorded.push({ subject, reason }) },
  });
  t.teardown(() => source.stop());
  return { source, sets, logger, recorded, fake, names: () => namesOf(sets.at(-1) ?? []) };
}

const is = (opened: { names(): string[] }, ...names: string[]) => until(() => opened.names().join() === names.join());

test('a directory: one pod per file, sorted, without dot files, subdirectories, pipes and broken links', async (t) => {
  const directory = await temporaryDirectory(t);
  await writeFile(join(directory, 'b.yaml'), manifest('b'));
  await writeFile(
    join(directory, 'a.json'),
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'a' },
      spec: { containers: [{ name: 'c', image: 'host' }] },
    }),
  );
  await writeFile(join(directory, '.hidden.yaml'), manifest('hidden'));
  await mkdir(join(directory, 'sub'));
  await writeFile(join(directory, 'sub', 'c.yaml'), manifest('c'));
  execFileSync('mkfifo', [join(directory, 'pipe')]);
  await symlink('/nowhere', join(directory, 'broken'));
  await writeFile(join(directory, '.target'), manifest('linked'));
  await symlink(join(directory, '.target'), join(directory, 'z-link'));
  const opened = open(t, directory);
  await opened.source.start();
  await is(opened, 'a-n1', 'b-n1', 'linked-n1');
  t.deepEqual(opened.logger.lines, []);
});

test('each document of a file is a pod or a list; rejected documents are named and do not affect others', async (t) => {
  const directory = await temporaryDirectory(t);
  const path = join(directory, 'several.yaml');
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [{ metadata: { name: 'no-spec' } }] });
  const text = manifest('block').replace('command: [sleep, "60"]', 'command: [echo, "a --- b"]');
  await writeFile(
    path,
    `# first\n%YAML 1.2\n---\n${manifest('one')}---  # second\r\n${text}---\nkind: [Pod\n---\n---\n${list}\n--- {"kind": "Service"}\n---\n${manifest('two')}---\n`,
  );
  const opened = open(t, directory);
  await opened.source.start();
  await is(opened, 'one-n1', 'block-n1', 'two-n1');
  const place = `file:${path}`;
  t.deepEqual(
    opened.logger.lines.map(({ fields }) => [fields['manifest'], fields['document']]),
    [
      [place, 3],
      [place, 6],
      [`${place} items[2]`, undefined],
    ],
  );
  await writeFile(path, `${manifest('one')}---\nkind: [Pod`);
  await until(() => opened.logger.lines.length === 4);
  t.deepEqual(opened.names(), ['one-n1', 'block-n1', 'two-n1'], 'what ran before goes on while a document is refused');
  await writeFile(path, `${manifest('one')}---\n${manifest('three')}`);
  await is(opened, 'one-n1', 'three-n1');
});

test('an invalid manifest is reported, and valid ones beside it run', async (t) => {
  const directory = await temporaryDirectory(t);
  await writeFile(join(directory, 'good.yaml'), manifest('good'));
  await writeFile(join(directory, 'syntax.yaml'), 'kind: [Pod');
  await writeFile(join(directory, 'other.yaml'), 'apiVersion: v1\nkind: Service\nmetadata: {name: x}\n');
  await writeFile(join(directory, 'type.yaml'), manifest('type').replace('image: host', 'image: 5'));
  await writeFile(join(directory, 'invalid.yaml'), manifest('Not_A_Name'));
  await writeFile(join(directory, 'empty.yaml'), '');
  await writeFile(join(directory, 'binary.yaml'), Buffer.from([0, 255, 254, 1]));
  await writeFile(join(directory, 'proto.json'), '{"__proto__": {"x": 1}, "kind": "Pod"}');
  const opened = open(t, directory);
  await opened.source.start();
  await is(opened, 'good-n1');
  const refused = opened.logger.lines
    .filter(({ message }) => message === 'manifest rejected')
    .map(({ fields }) => String(fields['manifest']));
  t.deepEqual(refused.map((place) => place.split('/').at(-1)).sort(), [
    'binary.yaml',
    'empty.yaml',
    'invalid.yaml',
    'other.yaml',
    'proto.json',
    'syntax.yaml',
    'type.yaml',
  ]);
});

test('file events: files are added, rewritten, replaced by a rename, moved in and out, removed', async (t) => {
  const directory = await temporaryDirectory(t);
  const aside = await temporaryDirectory(t);
  const opened = open(t, directory);
  await opened.source.start();
  await until(() => opened.sets.length === 1);
  t.deepEqual(opened.sets[0], [], 'an empty directory is an answer');
  await writeFile(join(directory, 'a.yaml'), manifest('a'));
  await is(opened, 'a-n1');
  const first = opened.sets.at(-1)?.[0]?.metadata?.uid;
  await writeFile(join(directory, 'a.yaml'), manifest('a', 'other'));
  await until(() => opened.sets.at(-1)?.[0]?.spec.containers[0]?.image === 'other');
  t.not(opened.sets.at(-1)?.[0]?.metadata?.uid, first, 'an edited manifest is another pod');
  await writeFile(join(aside, 'a.yaml'), manifest('a2'));
  await rename(join(aside, 'a.yaml'), join(directory, 'a.yaml'));
  await is(opened, 'a2-n1');
  await rename(join(directory, 'a.yaml'), join(aside, 'a.yaml'));
  await is(opened);
  await rename(join(aside, 'a.yaml'), join(directory, 'b.yaml'));
  await is(opened, 'a2-n1');
  await unlink(join(directory, 'b.yaml'));
  await is(opened);
});

test('--file-check-frequency: without file events a change is detected within one period, and not before', async (t) => {
  const directory = await temporaryDirectory(t);
  const opened = open(t, directory, { events: false, periodMs: 5000 });
  const listening = open(t, directory);
  for (const { source, sets } of [opened, listening]) {
    await source.start();
    await until(() => sets.length === 1);
  }
  await writeFile(join(directory, 'a.yaml'), manifest('a'));
  await is(listening, 'a-n1');
  t.is(opened.sets.length, 1, 'a source with file events has seen the change, this one has not');
  await until(() => {
    opened.fake.advance(5000);
    return opened.names().length === 1;
  });
  t.deepEqual(opened.names(), ['a-n1']);
});

test('--pod-manifest-path may be one file, which may be created, replaced and removed later', async (t) => {
  const directory = await temporaryDirectory(t);
  const path = join(directory, 'pod.yaml');
  const opened = open(t, path);
  await opened.source.start();
  await until(() => opened.sets.length === 1);
  t.deepEqual(opened.sets[0], [], 'a missing path is a source without pods');
  await writeFile(join(directory, 'other.yaml'), manifest('other'));
  await writeFile(path, manifest('one'));
  await is(opened, 'one-n1');
  await writeFile(join(directory, 'new'), manifest('two'));
  await rename(join(directory, 'new'), path);
  await is(opened, 'two-n1');
  await rm(path);
  await is(opened);
});

test('a missing directory that is created, removed and created again is followed', async (t) => {
  const parent = await temporaryDirectory(t);
  const directory = join(parent, 'manifests');
  const opened = open(t, directory, { periodMs: 20 });
  await opened.source.start();
  await until(() => opened.sets.length === 1);
  for (const name of ['a', 'b']) {
    await mkdir(directory);
    await writeFile(join(directory, 'x.yaml'), manifest(name));
    await is(opened, `${name}-n1`);
    await rm(directory, { recursive: true });
    await is(opened);
  }
  t.is(opened.sets.at(-1)?.length, 0);
});

test('a manifest that is being overwritten does not end its pod', async (t) => {
  const directory = await temporaryDirectory(t);
  await writeFile(join(directory, 'a.yaml'), manifest('a'));
  const opened = open(t, directory, { periodMs: 5 });
  await opened.source.start();
  await is(opened, 'a-n1');
  const before = opened.sets.at(-1)?.[0];
  for (const half of ['', 'apiVersion: v1\nkind: Pod\nmeta', manifest('a').replace('image: host', 'image: 5')]) {
    const seen = opened.logger.lines.length;
    // Moved to its place, so that what is read is this half and not one of before it was written.
    await writeFile(join(directory, '.half'), half);
    await rename(join(directory, '.half'), join(directory, 'a.yaml'));
    await until(() => opened.logger.lines.length > seen);
    t.deepEqual(opened.names(), ['a-n1']);
    t.is(opened.sets.at(-1)?.[0]?.metadata?.uid, before?.metadata?.uid);
  }
  await writeFile(join(directory, 'a.yaml'), manifest('a', 'new'));
  await until(() => opened.sets.at(-1)?.[0]?.spec.containers[0]?.image === 'new');
});

test('of two pods with one name that of the first file is used, with an event', async (t) => {
  const directory = await temporaryDirectory(t);
  await writeFile(join(directory, '1.yaml'), manifest('same', 'first'));
  await writeFile(join(directory, '2.yaml'), manifest('same', 'second'));
  const opened = open(t, directory);
  await opened.source.start();
  await is(opened, 'same-n1');
  t.is(opened.sets.at(-1)?.[0]?.spec.containers[0]?.image, 'first');
  t.deepEqual(
    opened.recorded.map(({ subject, reason }) => [subject.name, reason]),
    [['same-n1', 'FailedValidation']],
  );
});

test('a file may contain a list of pods', async (t) => {
  const directory = await temporaryDirectory(t);
  const pod = (name: string) => ({ metadata: { name }, spec: { containers: [{ name: 'c', image: 'host' }] } });
  await writeFile(
    join(directory, 'list.json'),
    JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items: [pod('a'), pod('BAD'), pod('b')] }),
  );
  const opened = open(t, directory);
  await opened.source.start();
  await is(opened, 'a-n1', 'b-n1');
  t.is(opened.logger.lines.length, 1, 'the bad one is reported');
});

test('nothing is delivered after stop', async (t) => {
  const directory = await temporaryDirectory(t);
  const opened = open(t, directory, { periodMs: 1 });
  await opened.source.start();
  await until(() => opened.sets.length === 1);
  await opened.source.stop();
  await writeFile(join(directory, 'a.yaml'), manifest('a'));
  await new Promise((resolve) => setTimeout(resolve, 50));
  t.is(opened.sets.length, 1);
});
