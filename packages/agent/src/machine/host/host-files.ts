export type FileType = 'directory' | 'file' | 'link' | 'socket' | 'charDevice' | 'blockDevice' | 'other';

export interface FileInfo {
  readonly type: FileType;
  /** Permission bits. */
  readonly mode: number;
  readonly gid: number;
}

/** Space that is taken below a directory, on its own file system. */
export interface TreeUsage {
  readonly bytes: number;
  readonly inodes: number;
}

/** A file system as a whole. */
export interface DiskUsage {
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
}

/**
 * Files of the machine that volumes consist of. Paths are absolute; failures are thrown with the path in their message.
 */
export interface HostFiles {
  /** Undefined when there is nothing, or no way to it. */
  info(path: string, links: 'follow' | 'show'): Promise<FileInfo | undefined>;
  realPath(path: string): Promise<string>;
  list(directory: string): Promise<readonly { readonly name: string; readonly isDirectory: boolean }[]>;
  read(path: string): Promise<Buffer>;
  /** Writes a file with exactly these permission bits. */
  write(path: string, content: Buffer, mode: number): Promise<void>;
  /** With what is missing above it. Returns whether it was made now. */
  makeDirectory(path: string, mode: number): Promise<boolean>;
  /**
   * A directory in an existing one, unless there is one, with exactly these permission bits. Whoever else writes there
   * cannot lead this elsewhere by links.
   */
  makeWithin(directory: string, name: string, mode: number): Promise<void>;
  /** An empty file, unless there is one. */
  makeFile(path: string, mode: number): Promise<void>;
  changeMode(path: string, mode: number): Promise<void>;
  changeGroup(path: string, gid: number): Promise<void>;
  readLink(path: string): Promise<string | undefined>;
  makeLink(target: string, path: string): Promise<void>;
  /** Takes the place of what is at `to`. */
  rename(from: string, to: string): Promise<void>;
  /** With everything below it; harmless when there is nothing. */
  remove(path: string): Promise<void>;
  /** Hands everything below a directory to a group, and itself: readable and writable, new files inherit the group. */
  giveToGroup(path: string, gid: number): Promise<void>;
  treeUsage(path: string, signal: AbortSignal): Promise<TreeUsage>;
  diskUsage(path: string): Promise<DiskUsage>;
  /** Which file system a path is on: the same text for all paths of one. */
  device(path: string): Promise<string>;
}
