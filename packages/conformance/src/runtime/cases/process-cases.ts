import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type RuntimeCase, refused } from '../case-context.ts';

export const processCases: readonly RuntimeCase[] = [
  {
    id: 'process.arguments-are-verbatim',
    title: 'arguments reach the program unchanged, including characters that are special to a shell',
    requires: ['printf', 'logs'],
    isCommon: true,
    async run({ output, harness }) {
      const args = [
        'a b',
        '',
        "it's",
        '"quoted"',
        '$HOME',
        '$(id)',
        '`id`',
        '*',
        '\\n',
        'tab\there',
        'line\nbreak',
        '-n',
        '--',
        'ünïcode ✓',
        ';',
        '|',
        '&',
      ];
      const { stdout } = await output(harness.printf?.('<%s>', ...args) ?? { image: '' });
      assert.equal(stdout, args.map((arg) => `<${arg}>`).join(''));
    },
  },
  {
    id: 'process.environment',
    title: 'the environment is that of the configuration, with any content; the last of equal names is used',
    requires: ['shell', 'logs'],
    isCommon: true,
    async run({ output, script }) {
      const env = [
        { name: 'PLAIN', value: 'old' },
        { name: 'SPACES', value: ' a  b ' },
        { name: 'QUOTES', value: `it's "quoted" $HOME \`id\` \\` },
        { name: 'LINES', value: 'one\ntwo' },
        { name: 'EMPTY', value: '' },
        { name: 'dotted.name-x', value: 'dots' },
        { name: 'PLAIN', value: 'new' },
      ];
      const { stdout } = await output(script('env -0 | tr "\\000\\n" "\\n~"'), { env });
      const seen = new Set(stdout.split('\n'));
      for (const entry of [
        'PLAIN=new',
        'SPACES= a  b ',
        `QUOTES=it's "quoted" $HOME \`id\` \\`,
        'LINES=one~two',
        'EMPTY=',
      ]) {
        assert(seen.has(entry), `${entry} in ${stdout}`);
      }
      assert(!seen.has('PLAIN=old'));
    },
  },
  {
    id: 'process.environment-is-clean',
    title: 'no variable of the environment of the runtime is inherited',
    requires: ['shell', 'logs'],
    isCommon: true,
    async run({ output, script }) {
      process.env['KEELSON_SUITE_SECRET'] = 'secret';
      const { stdout } = await output(script('env'));
      delete process.env['KEELSON_SUITE_SECRET'];
      assert(!stdout.includes('secret'));
      assert.match(stdout, /^PATH=/m);
    },
  },
  {
    id: 'process.bad-environment-names',
    title: 'invalid names and values of variables are rejected',
    requires: ['shell'],
    isCommon: true,
    async run({ commonSandbox, create }) {
      const sandboxId = await commonSandbox();
      await refused(create(sandboxId, { kind: 'run' }, { env: [{ name: 'A=B', value: '' }] }), 'InvalidArgument');
      await refused(create(sandboxId, { kind: 'run' }, { env: [{ name: 'A', value: 'x\0y' }] }), 'InvalidArgument');
    },
  },
  {
    id: 'process.working-directory',
    title: 'the process starts in its working directory, also with spaces in its path',
    requires: ['shell', 'logs', 'builtinImage'],
    isCommon: true,
    async run({ output, script, scratch }) {
      const workingDir = join(await scratch(), "a b'c");
      await mkdir(workingDir);
      assert.equal((await output(script('pwd'), { workingDir })).stdout, `${workingDir}\n`);
    },
  },
  {
    id: 'process.standard-input-is-empty',
    title: 'standard input is at end of file unless it was requested',
    requires: ['shell', 'logs'],
    isCommon: true,
    async run({ output, script }) {
      const { stdout, status } = await output(script('if read -r line; then echo "$line"; else echo end; fi'));
      assert.equal(stdout, 'end\n');
      assert.equal(status.exitCode, 0);
    },
  },
  {
    id: 'process.signals-are-as-usual',
    title: 'no signal is ignored or blocked at the start',
    requires: ['shell', 'logs'],
    isCommon: true,
    async run({ output, script }) {
      const { stdout } = await output(script("grep -E '^Sig(Blk|Ign):' /proc/self/status"));
      const masks = [...stdout.matchAll(/^Sig(?:Blk|Ign):\s+([0-9a-f]+)$/gm)].map((match) => BigInt(`0x${match[1]}`));
      assert.deepEqual(masks, [0n, 0n], stdout);
    },
  },
  {
    id: 'process.no-strange-files-open',
    title: 'the process has its three standard streams, and no other open file descriptors',
    requires: ['shell', 'logs'],
    isCommon: true,
    async run({ output, script }) {
      const { stdout } = await output(
        script('for n in 3 4 5 6 7 8 9; do readlink "/proc/$$/fd/$n" && echo "at $n"; done; true'),
      );
      assert.equal(stdout, '');
    },
  },
  {
    id: 'process.standard-streams-can-be-opened-again',
    title: '/dev/stdout and /dev/stderr are written to the log',
    requires: ['shell', 'logs'],
    isCommon: true,
    async run({ output, script }) {
      const { stdout, stderr } = await output(script('echo out > /dev/stdout; echo err > /dev/stderr'));
      assert.deepEqual([stdout, stderr], ['out\n', 'err\n']);
    },
  },
  {
    id: 'process.user-and-groups',
    title: 'the process has the user, the group and exactly the requested supplemental groups',
    requires: ['shell', 'logs', 'users', 'otherUser'],
    isCommon: true,
    async run({ output, script, harness }) {
      const { uid = 0, gid = 0 } = harness.otherUser ?? {};
      const securityContext = { runAsUser: uid, runAsGroup: gid, supplementalGroups: [gid + 1, gid + 2] };
      const { stdout } = await output(script('id -u; id -g; id -G | tr " " "\\n" | sort -n | tr "\\n" " "'), {
        securityContext,
      });
      assert.equal(stdout.trim(), `${uid}\n${gid}\n${gid} ${gid + 1} ${gid + 2}`);
    },
  },
  {
    id: 'process.user-without-groups',
    title: 'a process of another user has none of the groups of the runtime, and can write to its log',
    requires: ['shell', 'logs', 'users', 'otherUser'],
    isCommon: true,
    async run({ output, script, harness }) {
      const { uid = 0, gid = 0 } = harness.otherUser ?? {};
      const { stdout } = await output(script('id -G > /dev/stdout'), {
        securityContext: { runAsUser: uid, runAsGroup: gid },
      });
      assert.equal(stdout, `${gid}\n`);
    },
  },
  {
    id: 'process.unknown-user-name',
    title: 'an unknown user name is rejected',
    requires: ['users', 'shell'],
    isCommon: true,
    async run({ runtime, commonSandbox, create }) {
      const securityContext = { runAsUsername: 'nobody-has-this-name' };
      const attempt = create(await commonSandbox(), { kind: 'run' }, { securityContext }).then((id) =>
        runtime.startContainer(id),
      );
      await refused(attempt, 'StartFailed');
    },
  },
  {
    id: 'process.no-new-privileges',
    title: 'a process can be started with no_new_privs',
    requires: ['shell', 'logs', 'noNewPrivileges'],
    isCommon: true,
    async run({ output, script }) {
      const look = script("grep NoNewPrivs /proc/self/status | tr -d '\\t'");
      assert.equal((await output(look, { securityContext: { noNewPrivileges: true } })).stdout, 'NoNewPrivs:1\n');
      assert.equal((await output(look)).stdout, 'NoNewPrivs:0\n');
    },
  },
  {
    id: 'process.mounts',
    title: 'folders and files are mounted at the requested paths, and writes reach the source',
    requires: ['shell', 'logs', 'mounts'],
    isCommon: true,
    async run({ output, script, scratch }) {
      const folder = await scratch();
      await mkdir(join(folder, 'data dir'));
      await writeFile(join(folder, 'data dir', 'in'), 'given');
      await writeFile(join(folder, 'file'), 'single');
      const mounts = [
        { hostPath: join(folder, 'data dir'), containerPath: '/tmp/keelson-suite mount' },
        { hostPath: join(folder, 'file'), containerPath: '/tmp/keelson-suite-file' },
      ];
      const text =
        'cat "/tmp/keelson-suite mount/in" /tmp/keelson-suite-file; echo made > "/tmp/keelson-suite mount/out"';
      assert.equal((await output(script(text), { mounts })).stdout, 'givensingle');
      assert.equal(await readFile(join(folder, 'data dir', 'out'), 'utf8'), 'made\n');
    },
  },
  {
    id: 'process.mounts-are-private',
    title: 'mounts of a container are visible neither to other containers nor to the host',
    requires: ['shell', 'logs', 'mounts'],
    isCommon: true,
    async run({ output, script, scratch }) {
      const folder = await scratch();
      await writeFile(join(folder, 'f'), 'mine');
      const mounts = [{ hostPath: folder, containerPath: '/tmp/keelson-suite-private' }];
      assert.equal((await output(script('cat /tmp/keelson-suite-private/f'), { mounts })).stdout, 'mine');
      assert.notEqual((await output(script('cat /tmp/keelson-suite-private/f'))).status.exitCode, 0);
      assert(!(await readFile('/proc/self/mounts', 'utf8')).includes('keelson-suite-private'));
    },
  },
  {
    id: 'process.readonly-mounts',
    title: 'a read-only mount can be read and not written, also by root',
    requires: ['shell', 'logs', 'readonlyMounts'],
    isCommon: true,
    async run({ output, script, scratch }) {
      const folder = await scratch();
      await writeFile(join(folder, 'in'), 'given');
      const mounts = [{ hostPath: folder, containerPath: '/tmp/keelson-suite-ro', readonly: true }];
      const { stdout } = await output(
        script('cat /tmp/keelson-suite-ro/in; echo x > /tmp/keelson-suite-ro/out || echo refused'),
        { mounts },
      );
      assert.equal(stdout, 'givenrefused\n');
    },
  },
  {
    id: 'process.mount-of-nothing',
    title: 'a mount whose source does not exist is rejected',
    requires: ['shell', 'mounts'],
    isCommon: true,
    async run({ runtime, commonSandbox, create, scratch }) {
      const mounts = [{ hostPath: join(await scratch(), 'nothing'), containerPath: '/tmp/keelson-suite' }];
      const attempt = create(await commonSandbox(), { kind: 'run' }, { mounts }).then((id) =>
        runtime.startContainer(id),
      );
      await refused(attempt, 'InvalidArgument', 'StartFailed');
    },
  },
  {
    id: 'process.image-contents',
    title: 'a container of a pulled image has the files of the image, and its writes affect no other container',
    requires: ['shell', 'logs', 'pullableImage'],
    isCommon: true,
    async run({ images, output, harness }) {
      const image = await images.pullImage(harness.pullableImage ?? '');
      const run = (text: string) => output({ image, command: ['/bin/sh', '-c', text] });
      assert.equal((await run('echo changed > /suite-file && cat /suite-file')).stdout, 'changed\n');
      assert.equal((await run('cat /suite-file')).stdout, 'original\n');
    },
  },
];
