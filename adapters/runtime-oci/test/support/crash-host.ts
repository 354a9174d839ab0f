import { createOciRuntime } from '../../src/index.ts';
import { image } from './busybox-image.ts';
import { shell } from './oci-harness.ts';

/**
 * A process with a runtime in it, to be killed: makes a sandbox with the containers that the arguments describe and
 * prints their ids. Arguments: folder, folder of images, cgroup parent, then scripts.
 */
const [, , folder = '', sources = '', parent = '', ...scripts] = process.argv;
const { runtime, images } = await createOciRuntime({
  stateDirectory: `${folder}/state`,
  imageSources: [sources],
  cgroups: { parent },
});
await images.pullImage(image);
const namespaces = { network: 'pod', ipc: 'pod', pid: 'container' } as const;
const metadata = { name: 'pod', namespace: 'default', uid: 'uid', attempt: 0 };
const sandboxId = await runtime.runPodSandbox({
  metadata,
  logDirectory: `${folder}/logs`,
  securityContext: { namespaces: { ...namespaces, pid: 'pod' } },
});
const mounts = [{ hostPath: `${folder}/scratch`, containerPath: `${folder}/scratch` }];
const ids = await Promise.all(
  scripts.map(async (script, position) => {
    const config = {
      metadata: { name: `c${position}`, attempt: 0 },
      logPath: `${position}.log`,
      mounts,
      ...shell(script),
    };
    const id = await runtime.createContainer(sandboxId, { ...config, securityContext: { namespaces } });
    await runtime.startContainer(id);
    return id;
  }),
);
process.stdout.write(`${JSON.stringify({ sandboxId, ids })}\n`);
setInterval(() => {}, 1000);
