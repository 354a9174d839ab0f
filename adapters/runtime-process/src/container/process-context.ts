import type { Cgroups, ContainerContext } from '@keelson/container-monitor';

/** The dependencies that all containers of one process runtime share. */
export interface ProcessContext extends ContainerContext {
  readonly cgroups: Cgroups;
}
