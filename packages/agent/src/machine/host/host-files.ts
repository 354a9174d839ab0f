export type FileType = 'directory' | 'file' | 'link' | 'socket' | 'charDevice' | 'blockDevice' | 'other';

export interface FileInfo {
  readonly type: FileType;
  /** Permission bits. */
  readonly mode: number;
  readonly gid: number;
}

/** Usage of a directory tree on its own file system. */
export interface TreeUsage {
  readonly bytes: number;
  readonly inodes: number;
}

/** Usage of a file system. */
export interface DiskUsage {
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
}

/** File operations of volumes. Paths are absolute; error messages contain the path. */
export interface HostFiles {
  /** Undefined when the path does not exist or cannot be reached. */
  info(path: string, links: 'follow' | 'show'): Promise<FileInfo | undefined>;
  realPath(path: string): Promise<string>;
  list(directory: string): Promise<readonly { readonly name: string; readonly isDirectory: boolean }[]>;
  read(path: string): Promise<Buffer>;
  /** Writes a file with exactly these permission bits. */
  write(path: string, content: Buffer, mode: number): Promise<void>;
  /** Creates a directory and its missing parents. Returns whether it was created. */
  makeDirectory(path: string, mode: number): Promise<boolean>;
  /**
   * Creates a subdirectory with exactly these permission bits unless it exists. Other processes that write to the
   * directory cannot redirect this by symbolic links.
   */
  makeWithin(directory: string, name: string, mode: number): Promise<void>;
  /** Creates an empty file unless the path exists. */
  makeFile(path: string, mode: number): Promise<void>;
  changeMode(path: string, mode: number): Promise<void>;
  changeGroup(path: string, gid: number): Promise<void>;
  readLink(path: string): Promise<string | undefined>;
  makeLink(target: string, path: string): Promise<void>;
  /** Replaces `to`. */
  rename(from: string, to: string): Promise<void>;
  /** Removes a path recursively; succeeds when it does not exist. */
  remove(path: string): Promise<void>;
  /** Changes the group of a directory tree: the group can read and write, and new files inherit the group. */
  giveToGroup(path: string, gid: number): Promise<void>;
  treeUsage(path: string, signal: AbortSignal): Promise<TreeUsage>;
  diskUsage(path: string): Promise<DiskUsage>;
  /** Identifies the file system of a path: the same text for all paths of one file system. */
  device(path: string): Promise<string>;
}
