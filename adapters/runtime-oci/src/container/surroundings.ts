import type { Cgroups, ContainerContext } from '@keelson/container-monitor';
import type { OciBinary } from '../binary/oci-binary.ts';
import type { Programs } from '../launch/programs.ts';
import type { Machine } from '../machine/machine.ts';

/** What containers of one OCI runtime share. */
export interface OciSurroundings extends ContainerContext {
  readonly binary: OciBinary;
  readonly programs: Programs;
  readonly machine: Machine;
  readonly cgroups: Cgroups;
  /** Where the hierarchies are mounted. */
  readonly cgroupMountpoint: string;
}
