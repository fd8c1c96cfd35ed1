// Package confine runs a program on a stranger's file with bounded memory and CPU time. The program can read that file,
// programs and libraries, and no other file; it can write none. It has no network and cannot touch other processes.
//
// Three mechanisms of Linux overlap: resource limits, a seccomp filter (no network, no writing, no other processes) and
// Landlock (no reading). A kernel may lack the last one: then the program can read what this user can read, and the doctor
// says so.
//
// Invariant: the limits hold from the first instruction of the program. A process starts this same binary again under
// another name; its init function sets the limits and executes the program in its place.
package confine

import "time"

// Limits are the limits of a confined program.
type Limits struct {
	Memory uint64        // bytes of address space; zero: unlimited
	CPU    time.Duration // in whole seconds; zero: unlimited
	Input  string        // the file that it may read; empty: none
}

// Failed is the exit status if the limits could not be set. The reason is on stderr.
const Failed = 125

// maxFiles includes the input and the libraries while they are loaded.
const maxFiles = 64
