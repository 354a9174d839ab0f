import { RuntimeError } from '@keelson/container-runtime';
import { allDevices, devicesOf } from './devices.ts';
import { mountsOf, rootPropagationOf } from './mounts.ts';
import type { OciSpec } from './oci-spec.ts';
import { namespacesOf, type PodPlace } from './pod-place.ts';
import { type ProcessInput, processOf } from './process.ts';
import { maskedPaths, readonlyPaths } from './protected-paths.ts';
import { resourcesOf } from './resources.ts';
import { seccompOf } from './seccomp.ts';

/** Version of the OCI runtime specification. */
const ociVersion = '1.0.2';

export interface SpecInput extends ProcessInput {
  readonly pod: PodPlace;
  readonly cgroupsPath: string;
  /** True when the binary supports seccomp. */
  readonly seccomp: boolean;
}

/**
 * Creates the configuration of a container's bundle, whose root is the directory `rootfs`. Settings that this machine
 * does not support are rejected, not ignored.
 *
 * @throws RuntimeError `InvalidArgument`, `Unsupported`, `StartFailed` (unknown user)
 */
export async function makeSpec(input: SpecInput): Promise<OciSpec> {
  const { config, sandbox, pod, machine } = input;
  const { securityContext: context = {}, mounts = [], devices = [] } = config;
  const { privileged = false, readonlyRootfs = false } = context;
  if (privileged && !sandbox.securityContext?.privileged)
    throw new RuntimeError('InvalidArgument', 'a privileged container needs a privileged sandbox');
  const process = await processOf(input);
  const access = privileged ? await allDevices() : await devicesOf(devices);
  const seccomp = await seccompOf(context, process.capabilities.bounding, input.seccomp);
  const rootfsPropagation = rootPropagationOf(mounts);
  return {
    ociVersion,
    process,
    root: { path: 'rootfs', readonly: readonlyRootfs },
    mounts: await mountsOf({ mounts, pod, privileged, readonlyRootfs }),
    linux: {
      namespaces: namespacesOf(context.namespaces?.pid ?? pod.namespaces.pid, pod, machine.unifiedCgroups),
      cgroupsPath: input.cgroupsPath,
      resources: { ...resourcesOf(config.resources ?? {}, machine.swapLimits), devices: access.rules },
      devices: access.devices,
      ...(rootfsPropagation && { rootfsPropagation }),
      maskedPaths: privileged ? [] : (context.maskedPaths ?? maskedPaths),
      readonlyPaths: privileged ? [] : (context.readonlyPaths ?? readonlyPaths),
      ...(seccomp && { seccomp }),
    },
  };
}
