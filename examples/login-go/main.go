// Command login logs people in with a code or a link by WhatsApp.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"regexp"
	"sync"
)

const page = `<!doctype html><title>Login</title>
<form method=post action=/login/code><input name=number placeholder=6281234567890><button>Send me a code</button></form>
<form method=post action=/login/check><input name=code placeholder=123456><button>Log in</button></form>
<form method=post action=/login/link><input name=number placeholder=6281234567890><button>Give me a link</button></form>
<a href=/login/state>I have sent the message</a>`

// session is what we know about a browser.
type session struct {
	contact string // whose code or link it waits for
	link    string // the id of the link
	user    string // who is logged in
}

var (
	lock     sync.Mutex
	sessions = map[string]*session{}
)

func main() {
	http.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, page) })
	http.HandleFunc("POST /login/code", handle(sendCode))
	http.HandleFunc("POST /login/check", handle(checkCode))
	http.HandleFunc("POST /login/link", handle(makeLink))
	http.HandleFunc("GET /login/state", handle(readLink))
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("http://" + listener.Addr().String())
	log.Fatal(http.Serve(listener, nil))
}

func sendCode(s *session, r *http.Request) (string, error) {
	body := map[string]any{"contact_id": s.contact, "name": "Toko Ayu"}
	return "We have sent you a code.", call("POST", "/api/otp/code/request", body, nil)
}

func checkCode(s *session, r *http.Request) (string, error) {
	var answer struct{ Data struct{ Status string } }
	body := map[string]any{"contact_id": s.contact, "code": r.FormValue("code")}
	if err := call("POST", "/api/otp/code/validate", body, &answer); err != nil {
		return "", err
	}
	return s.welcome(answer.Data.Status)
}

func makeLink(s *session, r *http.Request) (string, error) {
	var answer struct{ Data struct{ ID, Link string } }
	body := map[string]any{"contact_id": s.contact, "expires": 300, "name": "Toko Ayu"}
	err := call("POST", "/api/otp/link/request", body, &answer)
	s.link = answer.Data.ID
	return answer.Data.Link, err
}

func readLink(s *session, r *http.Request) (string, error) {
	var answer struct{ Data struct{ Status string } }
	if s.link == "" {
		return "", fmt.Errorf("ask for a link first")
	}
	if err := call("GET", "/api/otp/link/"+s.link, nil, &answer); err != nil {
		return "", err
	}
	return s.welcome(answer.Data.Status)
}

func (s *session) welcome(status string) (string, error) {
	if status != "APPROVED" {
		return "", fmt.Errorf("not logged in: %s", status)
	}
	s.user, s.link = s.contact, ""
	return "Welcome, " + s.user, nil
}

var digits = regexp.MustCompile(`^[0-9]{7,15}$`)

// handle finds the session of a request. A number begins a new login; a code never brings its own number.
func handle(do func(*session, *http.Request) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		defer lock.Unlock()
		cookie, err := r.Cookie("session")
		s := &session{}
		if err == nil && sessions[cookie.Value] != nil {
			s = sessions[cookie.Value]
		}
		if number := r.FormValue("number"); digits.MatchString(number) {
			id := make([]byte, 16)
			rand.Read(id)
			s = &session{contact: number + "@c.us"}
			sessions[hex.EncodeToString(id)] = s
			http.SetCookie(w, &http.Cookie{Name: "session", Value: hex.EncodeToString(id), Path: "/", HttpOnly: true,
				SameSite: http.SameSiteLaxMode})
		}
		text, err := do(s, r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		fmt.Fprintln(w, text)
	}
}

// call asks Parley, and returns what it complains about as an error.
func call(method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r, err := http.NewRequest(method, os.Getenv("PARLEY_URL")+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+os.Getenv("PARLEY_TOKEN"))
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		var problem struct{ Code, Message string }
		json.NewDecoder(response.Body).Decode(&problem)
		return fmt.Errorf("%s: %s", problem.Code, problem.Message)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(out)
}
