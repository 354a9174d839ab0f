import type { Cgroups, ContainerSurroundings } from '@keelson/container-monitor';

/** What containers of one process runtime share. */
export interface ProcessSurroundings extends ContainerSurroundings {
  readonly cgroups: Cgroups;
}
