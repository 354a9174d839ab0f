import assert from 'node:assert/strict';
import { access, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { joinLog, type RuntimeCase, readLog, refused } from '../case-context.ts';

/** Some runtimes omit trailing zeros of a time. */
const nanoseconds = (time: string): string =>
  time.replace(/(?:\.(\d+))?(?=Z$|[+-]\d\d:\d\d$)/, (_, fraction = '') => `.${fraction.padEnd(9, '0')}`);

export const logCases: readonly RuntimeCase[] = [
  {
    id: 'log.format',
    title: 'every line is an entry with time, stream, tag and text',
    requires: ['shell', 'logs'],
    isCommon: true,
    async run({ output, script }) {
      const before = Date.now();
      const { lines } = await output(script('echo one; echo; echo "  three  "; echo four >&2'));
      const out = lines.filter(({ stream }) => stream === 'stdout');
      assert.deepEqual(
        out.map(({ text, partial }) => [text.toString(), partial]),
        [
          ['one', false],
          ['', false],
          ['  three  ', false],
        ],
      );
      assert.deepEqual(
        lines.filter(({ stream }) => stream === 'stderr').map(({ text }) => text.toString()),
        ['four'],
      );
      for (const { time } of lines) {
        assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/);
        assert(Date.parse(time) >= before - 1000 && Date.parse(time) <= Date.now() + 1000, time);
      }
    },
  },
  {
    id: 'log.times-do-not-go-back',
    title: 'entries of a stream are in the order of their times',
    requires: ['shell', 'logs'],
    isCommon: true,
    async run({ output, script }) {
      const { lines } = await output(script('for i in 1 2 3 4 5 6 7 8; do echo $i; echo $i >&2; done'));
      for (const wanted of ['stdout', 'stderr']) {
        const times = lines.filter(({ stream }) => stream === wanted).map(({ time }) => nanoseconds(time));
        assert.deepEqual([...times].sort(), times, wanted);
      }
    },
  },
  {
    id: 'log.is-complete-when-it-has-exited',
    title: 'when the container is reported as exited, the log contains all its output, in order',
    requires: ['shell', 'logs'],
    isCommon: true,
    async run({ harness, output, script }) {
      const count = harness.logLines ?? 20_000;
      const { stdout } = await output(
        script(`i=0; while [ $i -lt ${count} ]; do echo "line $i of the output"; i=$((i+1)); done`),
      );
      const expected = Array.from({ length: count }, (_, index) => `line ${index} of the output\n`).join('');
      assert(stdout === expected, `${stdout.length} bytes of ${expected.length}`);
    },
  },
  {
    id: 'log.text-without-line-end',
    title: 'text without a line end is logged as a partial entry',
    requires: ['shell', 'logs'],
    isCommon: true,
    async run({ output, script }) {
      const { lines, stdout } = await output(script('printf "a\\nno end"'));
      assert.equal(stdout, 'a\nno end');
      assert.equal(lines.at(-1)?.partial, true);
    },
  },
  {
    id: 'log.partial-text-does-not-wait-for-ever',
    title: 'a prompt is in the log while the container waits for input',
    requires: ['shell', 'logs'],
    async run({ sandbox, started, script, scratch, until }) {
      const logDirectory = await scratch();
      await started(script('printf "prompt> "; sleep 1000'), { logPath: 'p.log' }, await sandbox({ logDirectory }));
      await until(
        'the prompt',
        async () => joinLog(await readLog(join(logDirectory, 'p.log')), 'stdout').toString() === 'prompt> ',
      );
    },
  },
  {
    id: 'log.long-lines',
    title: 'a line of any length can be joined from its parts',
    requires: ['shell', 'logs'],
    isCommon: true,
    async run({ output, script }) {
      const { stdout, lines } = await output(script('head -c 200000 /dev/zero | tr "\\000" "x"; echo; echo after'));
      assert(stdout === `${'x'.repeat(200_000)}\nafter\n`, `${stdout.length} bytes`);
      assert(lines.length > 2, 'long lines are cut');
    },
  },
  {
    id: 'log.any-bytes',
    title: 'bytes that are not text are logged unchanged',
    requires: ['shell', 'logs'],
    isCommon: true,
    async run({ output, script }) {
      const { lines } = await output(script("printf '\\377\\376\\000\\033[1m\\r\\n\\200'"));
      assert.deepEqual(
        joinLog(lines, 'stdout'),
        Buffer.from([0xff, 0xfe, 0, 0x1b, 0x5b, 0x31, 0x6d, 0x0d, 0x0a, 0x80]),
      );
    },
  },
  {
    id: 'log.reopen-loses-nothing',
    title: 'a log that is moved and reopened continues in a new file, and nothing is lost',
    requires: ['shell', 'logs'],
    async run({ runtime, sandbox, started, script, scratch, waitFor, until }) {
      const logDirectory = await scratch();
      const stop = join(logDirectory, 'stop');
      const text = `i=0; while [ ! -e ${stop} ]; do echo $i; i=$((i+1)); sleep 0.01; done; echo end`;
      const id = await started(script(text), { logPath: 'app/0.log' }, await sandbox({ logDirectory }));
      const path = join(logDirectory, 'app', '0.log');
      const old = [`${path}.1`, `${path}.2`];
      for (const target of old) {
        await until('some lines', async () => (await readLog(path).catch(() => [])).length > 10);
        await rename(path, target);
        await runtime.reopenContainerLog(id);
        await access(path);
      }
      await runtime.execSync(id, { command: ['/bin/sh', '-c', `: > ${stop}`] });
      await waitFor(id, 'exited');
      const all = (await Promise.all([...old, path].map(readLog))).flat();
      const numbers = joinLog(all, 'stdout').toString().trim().split('\n');
      assert.equal(numbers.pop(), 'end');
      assert.deepEqual(
        numbers.map(Number),
        numbers.map((_, index) => index),
      );
    },
  },
  {
    id: 'log.reopen-needs-a-running-container',
    title: 'only the log of a running container can be reopened',
    isCommon: true,
    async run({ runtime, started, waitFor }) {
      await refused(runtime.reopenContainerLog('no-such-container'), 'NotFound');
      const id = await started({ kind: 'exit', code: 0 });
      await waitFor(id, 'exited');
      await refused(runtime.reopenContainerLog(id), 'InvalidState');
    },
  },
  {
    id: 'log.outlives-the-container',
    title: 'log files remain when container and sandbox are removed',
    requires: ['shell', 'logs'],
    async run({ runtime, sandbox, started, script, scratch, waitFor }) {
      const logDirectory = await scratch();
      const sandboxId = await sandbox({ logDirectory });
      const id = await started(script('echo kept'), { logPath: 'l.log' }, sandboxId);
      const status = await waitFor(id, 'exited');
      assert.equal(status.logPath, join(logDirectory, 'l.log'));
      await runtime.removePodSandbox(sandboxId);
      assert.equal(joinLog(await readLog(join(logDirectory, 'l.log')), 'stdout').toString(), 'kept\n');
    },
  },
  {
    id: 'log.appends',
    title: 'a container appends to an existing log file with its name',
    requires: ['shell', 'logs'],
    async run({ sandbox, started, script, scratch, waitFor }) {
      const logDirectory = await scratch();
      const sandboxId = await sandbox({ logDirectory });
      for (const word of ['first', 'second'])
        await waitFor(await started(script(`echo ${word}`), { logPath: 'l.log' }, sandboxId), 'exited');
      assert.equal(joinLog(await readLog(join(logDirectory, 'l.log')), 'stdout').toString(), 'first\nsecond\n');
    },
  },
  {
    id: 'log.may-be-unwanted',
    title: 'without a log path a container may write any amount of output',
    requires: ['shell'],
    isCommon: true,
    async run({ started, script, waitFor }) {
      const id = await started(script('head -c 1000000 /dev/zero; exit 3'));
      assert.equal((await waitFor(id, 'exited')).exitCode, 3);
    },
  },
  {
    id: 'log.path-stays-inside',
    title: 'a log path outside the log directory is rejected',
    requires: ['logs'],
    async run({ sandbox, create, scratch }) {
      const sandboxId = await sandbox({ logDirectory: join(await scratch(), 'logs') });
      await refused(create(sandboxId, { kind: 'run' }, { logPath: '../../out.log' }), 'InvalidArgument');
    },
  },
];
