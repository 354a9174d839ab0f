import { join } from 'node:path';
import type { RuntimeCapabilities } from '@keelson/container-runtime';
import type { Pod } from '@keelson/kinds';

/** The state of a pod at the end of its case. */
export interface Outcome {
  readonly phase: string;
  readonly ready: boolean;
  /** Of the container `main`: `running`, `waiting REASON` or `ended REASON CODE`. */
  readonly main: string;
  readonly restarts: number;
  readonly message?: string;
  /** What `main` printed, line ends shown as `|`, without the last. */
  readonly log?: string;
}

export interface PodCase {
  readonly name: string;
  /** `folder` is on the machine, and the pod's own. */
  spec(folder: string): Partial<Pod['spec']>;
  readonly expected: Outcome;
  /** Runtimes that can do it. Default: all. */
  readonly needs?: (capabilities: RuntimeCapabilities) => boolean;
}

type Container = Pod['spec']['containers'][number];
type Volume = NonNullable<Pod['spec']['volumes']>[number];

/** In commands of pods `$$` stands for one `$`. */
const main = (script: string, more: Partial<Container> = {}): Container => ({
  name: 'main',
  image: '',
  command: ['/bin/sh', '-c', script],
  ...more,
});
const folderVolume = (folder: string): Volume => ({ name: 'folder', hostPath: { path: folder } });
const mounted = (folder: string) => ({ name: 'folder', mountPath: folder });
const wait = 'while :; do sleep 1000; done';
const running = { phase: 'Running', ready: true, main: 'running', restarts: 0 } as const;
const ended = (phase: string, state: string) => ({ phase, ready: false, main: `ended ${state}`, restarts: 0 });
const everySecond = { periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 5 };

/** Does `first` when it runs for the first time, `then` ever after. */
const firstThen = (folder: string, first: string, then: string) =>
  main(`if [ -e ${folder}/ran ]; then ${then}; else : > ${folder}/ran; ${first}; fi`, {
    volumeMounts: [mounted(folder)],
  });

/** The same pods for every runtime. */
export const podCases: readonly PodCase[] = [
  {
    name: 'never-zero',
    spec: () => ({ restartPolicy: 'Never', containers: [main('echo one; printf two')] }),
    expected: { ...ended('Succeeded', 'Completed 0'), log: 'one|two' },
  },
  {
    name: 'never-three',
    // Engines read the two streams independently of each other: lines of both are in any order.
    spec: () => ({ restartPolicy: 'Never', containers: [main('echo err >&2; exit 3')] }),
    expected: { ...ended('Failed', 'Error 3'), log: 'err' },
  },
  {
    name: 'on-failure',
    spec: (folder) => ({
      restartPolicy: 'OnFailure',
      containers: [firstThen(folder, 'exit 1', 'exit 0')],
      volumes: [folderVolume(folder)],
    }),
    expected: { ...ended('Succeeded', 'Completed 0'), restarts: 1 },
  },
  {
    name: 'always',
    spec: (folder) => ({ containers: [firstThen(folder, 'exit 0', wait)], volumes: [folderVolume(folder)] }),
    expected: { ...running, restarts: 1 },
  },
  {
    name: 'init',
    spec: (folder) => ({
      restartPolicy: 'Never',
      initContainers: [
        { ...main(`echo first >> ${folder}/log`, { volumeMounts: [mounted(folder)] }), name: 'a' },
        { ...main(`echo second >> ${folder}/log`, { volumeMounts: [mounted(folder)] }), name: 'b' },
      ],
      containers: [main(`cat ${folder}/log`, { volumeMounts: [mounted(folder)] })],
      volumes: [folderVolume(folder)],
    }),
    expected: { ...ended('Succeeded', 'Completed 0'), log: 'first|second' },
  },
  {
    name: 'init-fails',
    spec: () => ({
      restartPolicy: 'Never',
      initContainers: [{ ...main('exit 4'), name: 'a' }],
      containers: [main('echo never')],
    }),
    expected: { phase: 'Failed', ready: false, main: 'waiting PodInitializing', restarts: 0 },
  },
  {
    name: 'environment',
    spec: () => ({
      restartPolicy: 'Never',
      containers: [
        main('echo "$GREETING/$TOKEN/$POD/$BOTH"; pwd', {
          workingDir: '/tmp',
          env: [
            { name: 'GREETING', valueFrom: { configMapKeyRef: { name: 'settings', key: 'greeting' } } },
            { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'secrets', key: 'token' } } },
            { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
            { name: 'BOTH', value: '$(GREETING)-$(TOKEN)-$$(POD)' },
          ],
        }),
      ],
    }),
    expected: { ...ended('Succeeded', 'Completed 0'), log: 'hello/s3cret/environment/hello-s3cret-$(POD)|/tmp' },
  },
  {
    name: 'volumes',
    spec: (folder) => ({
      restartPolicy: 'Never',
      containers: [
        main(
          `cd ${folder}; cat settings/greeting secrets/token labels/labels; touch empty/x && ls empty; touch settings/x 2>/dev/null || echo read-only`,
          {
            volumeMounts: [
              mounted(folder),
              ...['settings', 'secrets', 'labels', 'empty'].map((name) => ({
                name,
                mountPath: join(folder, name),
                readOnly: name === 'settings',
              })),
            ],
          },
        ),
      ],
      volumes: [
        folderVolume(folder),
        { name: 'settings', configMap: { name: 'settings' } },
        { name: 'secrets', secret: { secretName: 'secrets' } },
        { name: 'labels', downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } },
        { name: 'empty', emptyDir: {} },
      ],
    }),
    expected: { ...ended('Succeeded', 'Completed 0'), log: 'hellos3cretpart="same"x|read-only' },
    needs: ({ mounts, readonlyMounts }) => mounts && readonlyMounts,
  },
  {
    name: 'user',
    spec: () => ({
      restartPolicy: 'Never',
      securityContext: { runAsUser: 65_534, runAsGroup: 65_534, supplementalGroups: [4343] },
      containers: [main('id -u; id -g; id -G')],
    }),
    expected: { ...ended('Succeeded', 'Completed 0'), log: '65534|65534|65534 4343' },
    needs: ({ users }) => users,
  },
  {
    name: 'ready-later',
    spec: (folder) => ({
      containers: [
        main(`sleep 1; : > ${folder}/ready; ${wait}`, {
          volumeMounts: [mounted(folder)],
          readinessProbe: { exec: { command: ['/bin/sh', '-c', `test -e ${folder}/ready`] }, ...everySecond },
        }),
      ],
      volumes: [folderVolume(folder)],
    }),
    expected: running,
  },
  {
    name: 'liveness',
    spec: (folder) => ({
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          ...firstThen(folder, `: > ${folder}/dead; ${wait}`, `rm -f ${folder}/dead; ${wait}`),
          livenessProbe: {
            exec: { command: ['/bin/sh', '-c', `test ! -e ${folder}/dead`] },
            initialDelaySeconds: 1,
            ...everySecond,
          },
        },
      ],
      volumes: [folderVolume(folder)],
    }),
    expected: { ...running, restarts: 1 },
  },
  {
    name: 'post-start',
    spec: (folder) => ({
      restartPolicy: 'Never',
      containers: [
        main(`until [ -e ${folder}/hook ]; do sleep 0.1; done; cat ${folder}/hook`, {
          volumeMounts: [mounted(folder)],
          lifecycle: {
            postStart: {
              exec: { command: ['/bin/sh', '-c', `echo hooked > ${folder}/h; mv ${folder}/h ${folder}/hook`] },
            },
          },
        }),
      ],
      volumes: [folderVolume(folder)],
    }),
    expected: { ...ended('Succeeded', 'Completed 0'), log: 'hooked' },
  },
  {
    name: 'last-words',
    spec: () => ({
      restartPolicy: 'Never',
      containers: [main('printf "all is said" > /dev/termination-log; exit 1')],
    }),
    expected: { ...ended('Failed', 'Error 1'), message: 'all is said' },
    needs: ({ mounts }) => mounts,
  },
  {
    name: 'last-lines',
    spec: () => ({
      restartPolicy: 'Never',
      containers: [main('echo not said; exit 1', { terminationMessagePolicy: 'FallbackToLogsOnError' })],
    }),
    expected: { ...ended('Failed', 'Error 1'), message: 'not said\n', log: 'not said' },
  },
  {
    name: 'no-image',
    spec: () => ({ containers: [main('echo never', { image: 'no.such.host/image:1', imagePullPolicy: 'Never' })] }),
    expected: { phase: 'Pending', ready: false, main: 'waiting ErrImageNeverPull', restarts: 0 },
  },
  {
    name: 'no-program',
    spec: () => ({ restartPolicy: 'Never', containers: [{ ...main(''), command: ['/no/such/program'] }] }),
    expected: ended('Failed', 'StartError 128'),
  },
  {
    name: 'too-much-memory',
    spec: () => ({
      restartPolicy: 'Never',
      containers: [main('tail /dev/zero', { resources: { limits: { memory: '32Mi' } } })],
    }),
    expected: ended('Failed', 'OOMKilled 137'),
    needs: ({ memoryLimits }) => memoryLimits,
  },
];
