import { code } from './machine-code.ts';

/** The reaper of `NativePrograms`, with the system call numbers of this architecture. */
export const reaper = code(`
  48 89 e3                ; mov rbx,rsp
  6a 24                   ; push 0x24
  5f                      ; pop rdi
  6a 01                   ; push 0x1
  5e                      ; pop rsi
  31 d2                   ; xor edx,edx
  45 31 d2                ; xor r10d,r10d
  45 31 c0                ; xor r8d,r8d
  b8 9d 00 00 00          ; mov eax,0x9d
  0f 05                   ; syscall
  6a 39                   ; push 0x39
  58                      ; pop rax
  0f 05                   ; syscall
  85 c0                   ; test eax,eax
  74 63                   ; je child
  48 83 ec 20             ; sub rsp,0x20
  ; again:
  6a ff                   ; push 0xffffffffffffffff
  5f                      ; pop rdi
  48 89 e6                ; mov rsi,rsp
  31 d2                   ; xor edx,edx
  45 31 d2                ; xor r10d,r10d
  6a 3d                   ; push 0x3d
  58                      ; pop rax
  0f 05                   ; syscall
  85 c0                   ; test eax,eax
  78 44                   ; js done
  8b 14 24                ; mov edx,DWORD PTR [rsp]
  48 c1 e0 20             ; shl rax,0x20
  48 09 d0                ; or rax,rdx
  48 8d 7c 24 08          ; lea rdi,[rsp+0x8]
  6a 10                   ; push 0x10
  59                      ; pop rcx
  ; digit:
  48 c1 c0 04             ; rol rax,0x4
  89 c2                   ; mov edx,eax
  83 e2 0f                ; and edx,0xf
  83 fa 0a                ; cmp edx,0xa
  72 03                   ; jb decimal
  83 c2 27                ; add edx,0x27
  ; decimal:
  83 c2 30                ; add edx,0x30
  88 17                   ; mov BYTE PTR [rdi],dl
  48 ff c7                ; inc rdi
  ff c9                   ; dec ecx
  75 e3                   ; jne digit
  c6 07 0a                ; mov BYTE PTR [rdi],0xa
  6a 03                   ; push 0x3
  5f                      ; pop rdi
  48 8d 74 24 08          ; lea rsi,[rsp+0x8]
  6a 11                   ; push 0x11
  5a                      ; pop rdx
  6a 01                   ; push 0x1
  58                      ; pop rax
  0f 05                   ; syscall
  eb a8                   ; jmp again
  ; done:
  31 ff                   ; xor edi,edi
  ; exit:
  6a 3c                   ; push 0x3c
  58                      ; pop rax
  0f 05                   ; syscall
  ; child:
  6a 03                   ; push 0x3
  5f                      ; pop rdi
  6a 03                   ; push 0x3
  58                      ; pop rax
  0f 05                   ; syscall
  48 8b 03                ; mov rax,QWORD PTR [rbx]
  48 8d 73 10             ; lea rsi,[rbx+0x10]
  48 8b 3e                ; mov rdi,QWORD PTR [rsi]
  48 8d 54 c3 10          ; lea rdx,[rbx+rax*8+0x10]
  6a 3b                   ; push 0x3b
  58                      ; pop rax
  0f 05                   ; syscall
  6a 7f                   ; push 0x7f
  5f                      ; pop rdi
  eb da                   ; jmp exit
`);

/** The holder of `NativePrograms`. */
export const holder = code(`
  48 83 3c 24 01          ; cmp QWORD PTR [rsp],0x1
  75 20                   ; jne quit
  31 c0                   ; xor eax,eax
  50                      ; push rax
  50                      ; push rax
  6a 02                   ; push 0x2
  6a 01                   ; push 0x1
  48 89 e6                ; mov rsi,rsp
  6a 11                   ; push 0x11
  5f                      ; pop rdi
  31 d2                   ; xor edx,edx
  6a 08                   ; push 0x8
  41 5a                   ; pop r10
  6a 0d                   ; push 0xd
  58                      ; pop rax
  0f 05                   ; syscall
  ; again:
  6a 22                   ; push 0x22
  58                      ; pop rax
  0f 05                   ; syscall
  eb f9                   ; jmp again
  ; quit:
  31 ff                   ; xor edi,edi
  6a 3c                   ; push 0x3c
  58                      ; pop rax
  0f 05                   ; syscall
`);
