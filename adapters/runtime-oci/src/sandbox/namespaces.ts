import { execFile } from 'node:child_process';
import { readFile, statfs } from 'node:fs/promises';
import { toolPath, tryTool } from '@keelson/container-host';
import { RuntimeError } from '@keelson/container-runtime';
import type { PodPlace } from '../bundle/pod-place.ts';

/** Magic number of nsfs, the file system of namespace files. */
const namespaceMagic = 0x6e736673;
/** Size limit of a pod's shared memory; other container engines use the same. */
const sharedMemoryBytes = 64 << 20;

/**
 * Script that mounts shared memory, creates the namespaces of a pod and mounts them at files. Arguments: directory of
 * the shared memory or an empty string; flags of unshare with the files; `--`; the command to run in the namespaces.
 */
const outsideScript = `shm=$1
shift
if [ -n "$shm" ]; then
  mkdir "$shm" && mount -t tmpfs -o 'nosuid,nodev,noexec,mode=1777,size=${sharedMemoryBytes}' shm "$shm" || exit 1
fi
if [ "$1" = -- ]; then exit 0; fi
for flag; do
  if [ "$flag" = -- ]; then break; fi
  : > "\${flag#*=}" || exit 1
done
exec unshare --mount "$@"
`;

/**
 * Script that runs in the new namespaces of a pod: enables the loopback interface, sets the host name and the sysctls.
 * Arguments: `net` or an empty string; host name or an empty string; sysctls with their values. The loopback interface
 * is enabled through sysfs, because tools such as ip may not be installed.
 */
const insideScript = `if [ "$1" = net ]; then
  mount -t sysfs sysfs /sys && echo 0x9 > /sys/class/net/lo/flags || exit 1
fi
if [ -n "$2" ]; then printf %s "$2" > /proc/sys/kernel/hostname || exit 1; fi
shift 2
while [ $# -gt 0 ]; do
  printf %s "$2" > "/proc/sys/$1" || exit 1
  shift 2
done
`;

/**
 * Creates the namespaces of a pod, except the PID namespace.
 *
 * @throws RuntimeError `Internal`; the caller removes what was created with {@link removeNamespaces}
 */
export async function makeNamespaces(
  place: PodPlace,
  hostname: string,
  sysctls: readonly { readonly path: string; readonly value: string }[],
): Promise<void> {
  const { network, ipc, uts, shm } = place;
  const flags = [
    ...(network === undefined ? [] : [`--net=${network}`]),
    ...(ipc === undefined ? [] : [`--ipc=${ipc}`]),
    ...(uts === undefined ? [] : [`--uts=${uts}`]),
  ];
  const settings = sysctls.flatMap(({ path, value }) => [path, value]);
  const inside = [
    '/bin/sh',
    '-c',
    insideScript,
    'sh',
    network === undefined ? '' : 'net',
    uts === undefined ? '' : hostname,
  ];
  const args = ['-c', outsideScript, 'sh', ipc === undefined ? '' : shm, ...flags, '--', ...inside, ...settings];
  await new Promise<void>((resolve, reject) => {
    execFile('/bin/sh', args, { env: { PATH: toolPath, LC_ALL: 'C' } }, (error, _stdout, stderr) => {
      if (error === null) resolve();
      else
        reject(
          new RuntimeError('Internal', `cannot create the namespaces of the pod: ${stderr.trim() || error.message}`),
        );
    });
  });
}

/**
 * Whether the pod's namespaces are still mounted at their files. A restart of the machine or another process may have
 * unmounted them.
 */
export async function areNamespacesMounted(place: PodPlace): Promise<boolean> {
  const files = [place.network, place.ipc, place.uts, place.pid].filter((path) => path !== undefined);
  const types = await Promise.all(
    files.map((path) =>
      statfs(path).then(
        ({ type }) => type,
        () => 0,
      ),
    ),
  );
  return types.every((type) => type === namespaceMagic);
}

/** Unmounts everything below the pod's directory. */
export async function removeNamespaces({ folder }: PodPlace): Promise<void> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
  const mounted = lines.map((line) => line.split(' ')[4] ?? '').filter((path) => path.startsWith(`${folder}/`));
  if (mounted.length === 0) return;
  const problem = await tryTool('umount', ['--lazy', '--', ...mounted]);
  if (problem !== undefined) throw new RuntimeError('Internal', `cannot unmount the namespaces of the pod: ${problem}`);
}
