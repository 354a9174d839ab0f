import type { Cgroups, ContainerContext } from '@keelson/container-monitor';
import type { OciBinary } from '../binary/oci-binary.ts';
import type { Machine } from '../bundle/machine.ts';
import type { Programs } from '../launch/programs.ts';

/** The dependencies that all containers of one OCI runtime share. */
export interface OciContext extends ContainerContext {
  readonly binary: OciBinary;
  readonly programs: Programs;
  readonly machine: Machine;
  readonly cgroups: Cgroups;
  /** Mount point of the cgroup hierarchies. */
  readonly cgroupMountpoint: string;
}
