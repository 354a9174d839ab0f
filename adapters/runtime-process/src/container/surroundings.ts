import type { Cgroups, ContainerContext } from '@keelson/container-monitor';

/** What containers of one process runtime share. */
export interface ProcessSurroundings extends ContainerContext {
  readonly cgroups: Cgroups;
}
