import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ContainerConfig } from '@keelson/container-runtime';
import test from 'ava';
import { apiError } from '../src/api/api-error.ts';
import type { EngineHttp } from '../src/api/engine-http.ts';
import { inspectContainer } from '../src/api/inspect-container.ts';
import { compareVersions, type Flavour } from '../src/api/negotiate.ts';
import { pullError } from '../src/images/pull.ts';
import { cgroupParentOf } from '../src/model/cgroup-parent.ts';
import { containerBody } from '../src/model/container-body.ts';
import { containerName, sandboxName } from '../src/model/names.ts';

const namespaces = { network: 'pod', pid: 'container', ipc: 'pod' } as const;

interface Body {
  readonly Hostname?: string;
  readonly Entrypoint?: readonly string[];
  readonly Cmd?: readonly string[];
  readonly HostConfig: {
    readonly SecurityOpt: readonly string[];
    readonly MaskedPaths?: readonly string[];
    readonly ReadonlyPaths?: readonly string[];
    readonly LogConfig: { readonly Type: string; readonly Config: Readonly<Record<string, string>> };
  };
}

function bodyOf(flavour: Flavour, config: Partial<ContainerConfig>): Promise<Body> {
  const whole = { metadata: { name: 'app', attempt: 0 }, image: 'app', ...config };
  const input = {
    flavour,
    config: whole,
    sandboxId: 'pod',
    namespaces,
    labels: {},
    hostname: 'web-0',
    cgroupParent: undefined,
  };
  return containerBody({ ...input, imageUser: undefined }) as Promise<Body>;
}

test('Docker receives the content of a seccomp profile and no host name, Podman the path and the name', async (t) => {
  const folder = mkdtempSync('/tmp/keelson-requests-');
  t.teardown(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'profile.json');
  writeFileSync(path, '{"defaultAction":"SCMP_ACT_ALLOW"}');
  const config = {
    securityContext: { seccomp: { type: 'localhost', localhostRef: path }, noNewPrivileges: true },
  } as const;
  const [docker, podman] = await Promise.all([bodyOf('docker', config), bodyOf('podman', config)]);
  t.deepEqual(docker.HostConfig.SecurityOpt, ['no-new-privileges', 'seccomp={"defaultAction":"SCMP_ACT_ALLOW"}']);
  t.deepEqual(podman.HostConfig.SecurityOpt, ['no-new-privileges', `seccomp=${path}`]);
  t.deepEqual([docker.Hostname, podman.Hostname], [undefined, 'web-0']);
  t.deepEqual([docker.HostConfig.LogConfig.Type, podman.HostConfig.LogConfig.Type], ['json-file', 'k8s-file']);
});

test('protected paths are lists for Docker and a mask for Podman, and engines limit their own log files', async (t) => {
  const config = { securityContext: { maskedPaths: ['/proc/keys', '/proc/kcore'], readonlyPaths: ['/proc/sys'] } };
  const [docker, podman] = await Promise.all([bodyOf('docker', config), bodyOf('podman', config)]);
  t.like(docker.HostConfig, {
    MaskedPaths: ['/proc/keys', '/proc/kcore'],
    ReadonlyPaths: ['/proc/sys'],
    SecurityOpt: [],
  });
  t.deepEqual(podman.HostConfig.SecurityOpt, ['mask=/proc/keys:/proc/kcore']);
  const plain = (await bodyOf('docker', {})).HostConfig;
  t.false('MaskedPaths' in plain || 'ReadonlyPaths' in plain);
  for (const { HostConfig } of [docker, podman]) t.like(HostConfig.LogConfig, { Config: { 'max-size': '50m' } });
});

test('a command replaces entry point and arguments of the image, arguments alone replace only its arguments', async (t) => {
  t.like(await bodyOf('docker', { command: ['a', 'b'] }), { Entrypoint: ['a', 'b'], Cmd: [] });
  t.like(await bodyOf('docker', { command: ['a'], args: ['c'] }), { Entrypoint: ['a'], Cmd: ['c'] });
  t.like(await bodyOf('docker', { args: ['c'] }), { Entrypoint: undefined, Cmd: ['c'] });
  t.like(await bodyOf('docker', {}), { Entrypoint: undefined, Cmd: undefined });
});

test('a cgroup parent is a path for the cgroupfs driver, and the name of a slice for the systemd driver', (t) => {
  const slice = '/kubepods.slice/kubepods-burstable.slice';
  t.deepEqual(
    [undefined, '/kubepods/burstable', slice].flatMap((path) => [
      cgroupParentOf('cgroupfs', path),
      cgroupParentOf('systemd', path),
    ]),
    [undefined, undefined, '/kubepods/burstable', undefined, slice, 'kubepods-burstable.slice'],
  );
});

test('errors of both engines have the same codes', (t) => {
  const code = (status: number, body: object) => apiError(status, 'call', JSON.stringify(body)).code;
  t.is(code(404, { message: 'No such container: x' }), 'NotFound');
  t.is(code(404, { message: 'No such image: x:1' }), 'ImageNotFound');
  t.is(code(404, { cause: 'image not known', message: 'no such image: x' }), 'ImageNotFound');
  t.is(code(409, { message: 'Conflict. The container name "/x" is already in use by container "y"' }), 'AlreadyExists');
  t.is(code(500, { cause: 'that name is already in use', message: 'container create: …' }), 'AlreadyExists');
  t.is(code(409, { message: 'container x is not running' }), 'InvalidState');
  t.is(code(500, { cause: 'container state improper', message: '…' }), 'InvalidState');
  t.is(code(400, { message: 'bad parameter' }), 'InvalidArgument');
  t.is(apiError(500, 'call', 'no JSON').message, 'call: no JSON');
});

test('an image is missing when the status is 404, not when a port or a digest contains these digits', (t) => {
  const reading =
    'initializing source docker://127.0.0.1:40404/team/app:1: reading manifest 1 in 127.0.0.1:40404/team/app';
  for (const text of [
    `${reading}: manifest unknown`,
    `${reading}: StatusCode: 404, page not found`,
    'pinging container registry: invalid status code from registry 404 (Not Found)',
    'received unexpected HTTP status: 404 Not Found',
    'unexpected status code: 404',
  ])
    t.is(pullError(text).code, 'ImageNotFound', text);
  for (const text of [
    `${reading}: unauthorized: authentication required`,
    'Get "http://127.0.0.1:404/v2/": connection refused',
    'reading blob sha256:ab404 cd: received unexpected HTTP status: 500 Internal Server Error',
    'parsing image configuration: fetching blob 404404: invalid status code from registry 500',
  ])
    t.is(pullError(text).code, 'PullFailed', text);
});

test('names are valid for engines, differ with the identity, and are deterministic', (t) => {
  const pod = { name: '../../x', namespace: '-rf', uid: '$(id)', attempt: 0 };
  const name = sandboxName('me', pod);
  t.regex(name, /^[a-zA-Z0-9][a-zA-Z0-9_.-]+$/);
  t.is(sandboxName('me', { ...pod }), name);
  const others = [
    sandboxName('you', pod),
    sandboxName('me', { ...pod, attempt: 1 }),
    sandboxName('me', { ...pod, uid: 'other' }),
  ];
  t.is(new Set([name, ...others]).size, 4);
  const long = { name: 'n'.repeat(300), attempt: 0 };
  t.true(containerName(pod, 'a', long).length < 200);
  t.not(containerName(pod, 'a', long), containerName(pod, 'b', long));
});

test('versions are compared numerically', (t) => {
  t.true(compareVersions('1.41', '1.5') > 0);
  t.true(compareVersions('4.3.1', '4.3') > 0);
  t.is(compareVersions('1.40', '1.40.0'), 0);
});

test('a container whose process ends during its inspection is inspected again, five times at most', async (t) => {
  const refusal = apiError(500, 'GET /containers/x/json', '{"message":"read /proc/17988/cgroup: no such process"}');
  const engine = (failures: number, error: Error) => {
    let looks = 0;
    const json = async () => {
      looks += 1;
      if (looks <= failures) throw error;
      return { status: 200, body: { Id: `look ${looks}` } };
    };
    return { json } as unknown as EngineHttp;
  };
  t.like(await inspectContainer(engine(1, refusal), 'x', undefined), { Id: 'look 2' });
  await t.throwsAsync(inspectContainer(engine(9, refusal), 'x', undefined), { is: refusal });
  const other = apiError(500, 'GET /containers/x/json', '{"message":"database is locked"}');
  await t.throwsAsync(inspectContainer(engine(1, other), 'x', undefined), { is: other });
});
