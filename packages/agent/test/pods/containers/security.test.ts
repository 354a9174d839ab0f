import type { Image } from '@keelson/container-runtime';
import type { Container, Pod } from '@keelson/kinds';
import test from 'ava';
import { containerSecurity } from '../../../src/pods/containers/container-config.ts';
import { checkUser } from '../../../src/pods/containers/container-starter.ts';
import { ContainerConfigError } from '../../../src/pods/environment/container-environment.ts';
import { testPod } from '../../support/bench.ts';

type Own = NonNullable<Container['securityContext']>;
type Common = NonNullable<Pod['spec']['securityContext']>;

const facts = { isolatePids: true, seccompRoot: '/profiles' };
const containerOf = (securityContext: Own): Container => ({ name: 'main', image: 'app:1', securityContext });

const cases: readonly (readonly [string, Partial<Pod['spec']>, Own, object])[] = [
  ['nothing is asked for', {}, {}, {}],
  ['the user of the pod', { securityContext: { runAsUser: 5, runAsGroup: 6 } }, {}, { runAsUser: 5, runAsGroup: 6 }],
  [
    'the user of the container takes precedence, root too',
    { securityContext: { runAsUser: 5, runAsGroup: 6 } },
    { runAsUser: 0, runAsGroup: 0 },
    { runAsUser: 0, runAsGroup: 0 },
  ],
  [
    'groups of the pod, that of its files among them',
    { securityContext: { supplementalGroups: [7, 8], fsGroup: 9 } },
    {},
    { supplementalGroups: [7, 8, 9] },
  ],
  ['privileged', {}, { privileged: true }, { privileged: true }],
  ['a root file system that is only read', {}, { readOnlyRootFilesystem: true }, { readonlyRootfs: true }],
  ['no further privileges', {}, { allowPrivilegeEscalation: false }, { noNewPrivileges: true }],
  ['privileges that may grow are the default', {}, { allowPrivilegeEscalation: true }, {}],
  [
    'capabilities',
    {},
    { capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] } },
    { capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] } },
  ],
  [
    'a profile of AppArmor by its name',
    { securityContext: { appArmorProfile: { type: 'Localhost', localhostProfile: 'mine' } } },
    {},
    { apparmor: { type: 'localhost', localhostRef: 'mine' } },
  ],
  ['labels of SELinux', { securityContext: { seLinuxOptions: { level: 's0' } } }, {}, { selinux: { level: 's0' } }],
  [
    'the namespaces of the host',
    { hostNetwork: true, hostPID: true, hostIPC: true },
    {},
    { namespaces: { network: 'node', pid: 'node', ipc: 'node' } },
  ],
  [
    'one PID namespace for the pod',
    { shareProcessNamespace: true },
    {},
    { namespaces: { network: 'pod', pid: 'pod', ipc: 'pod' } },
  ],
];

for (const [title, spec, own, expected] of cases) {
  test(`security: ${title}`, (t) => {
    const namespaces = { network: 'pod', pid: 'container', ipc: 'pod' };
    t.deepEqual(containerSecurity(testPod('p', spec), containerOf(own), facts) as object, { namespaces, ...expected });
  });
}

test('without --runtime-a-disable-shared-pid containers share one PID namespace, unless the pod disables it', (t) => {
  const shared = { ...facts, isolatePids: false };
  const pidOf = (spec: Partial<Pod['spec']>) =>
    containerSecurity(testPod('p', spec), containerOf({}), shared).namespaces?.pid;
  t.is(pidOf({}), 'pod');
  t.is(pidOf({ shareProcessNamespace: false }), 'container');
});

const image = (facts_: Partial<Image>) => async () =>
  ({ id: 'i', repoTags: [], repoDigests: [], sizeBytes: 0, pinned: false, config: {}, ...facts_ }) satisfies Image;

const users: readonly (readonly [string, Common, Own, Partial<Image>, RegExp | undefined])[] = [
  ['root is permitted by default', {}, {}, {}, undefined],
  ['the pod names another user', { runAsNonRoot: true, runAsUser: 5 }, {}, { uid: 0 }, undefined],
  ['the image has another user', { runAsNonRoot: true }, {}, { uid: 5 }, undefined],
  [
    'the container may be root although the pod may not',
    { runAsNonRoot: true },
    { runAsNonRoot: false, runAsUser: 0 },
    {},
    undefined,
  ],
  [
    'the container asks for root',
    { runAsNonRoot: true },
    { runAsUser: 0 },
    { uid: 5 },
    /runAsUser breaks non-root policy/,
  ],
  ['the image runs as root', {}, { runAsNonRoot: true }, { uid: 0 }, /image will run as root/],
  ['the image has no user', {}, { runAsNonRoot: true }, {}, /image will run as root/],
  ['the image has a name only', {}, { runAsNonRoot: true }, { username: 'app' }, /non-numeric user \(app\)/],
];

for (const [title, common, own, facts_, problem] of users) {
  test(`runAsNonRoot: ${title}`, async (t) => {
    const check = checkUser(testPod('p', { securityContext: common }), containerOf(own), image(facts_));
    if (problem === undefined) await t.notThrowsAsync(check);
    else await t.throwsAsync(check, { instanceOf: ContainerConfigError, message: problem });
  });
}
